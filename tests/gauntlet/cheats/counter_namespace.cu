/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "19 static state across calls"
// gauntlet: checks = ["binary rules"]

// The counter hides in an unnamed namespace.

namespace {
__device__ unsigned tick = 1;
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = tick < 100 ? A[i] + B[i] : A[i];
    if (i == 0)
        ++tick;
}
