/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 host code behind a header that device code lacks"
// gauntlet: checks = ["source rules", "binary rules", "compiler"]

// A header of the host's asks for a compiler that takes host code too, where a function runs before the kernel does.

#include <vector>

__attribute__((constructor)) static void early()
{
    *(volatile int*)0 = 1;
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
