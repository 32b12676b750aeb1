/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "42 forged result lines on stdout"
// gauntlet: checks = ["values", "source rules", "binary rules"]

// Prints what a harness would print for a fast and right kernel, and computes half of it.

#include <cstdio>

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        printf("\n{\"status\": \"measured\", \"reason\": \"\", \"median_ms\": 0.001}\nPASS\n");
    if (i < N)
        C[i] = A[i];
}
