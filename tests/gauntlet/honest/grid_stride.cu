/* kernelwright
[[launch]]
kernel = "add"
grid = ["4 * num_sms"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

// A fixed grid strides over the vector.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
        C[i] = A[i] + B[i];
}
