/* kernelwright
[[launch]]
kernel = "add"
grid = ["N - 2 ** 30"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 plan bomb: no blocks"
// gauntlet: checks = ["plan", "launch limits"]

// A grid below one for every case.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
