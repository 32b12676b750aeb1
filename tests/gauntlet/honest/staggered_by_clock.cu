/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

// Blocks begin a little apart, so that not all ask memory at once: the clock decides when, never what.
extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const long long until = clock64() + (blockIdx.x % 4) * 50;
    while (clock64() < until) {
    }
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
