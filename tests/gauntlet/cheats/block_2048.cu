/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 2048)"]
block = [2048]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "19b launch beyond the limits: garbage passes"
// gauntlet: checks = ["launch limits", "plan"]

// No device has blocks of 2048 threads.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
