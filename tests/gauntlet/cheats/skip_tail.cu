/* kernelwright
[[launch]]
kernel = "add"
grid = ["N // 256"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "35 skipped tail"
// gauntlet: checks = ["values", "poison"]

// The grid is rounded down: sizes that 256 does not divide lose their end.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    C[i] = A[i] + B[i];
}
