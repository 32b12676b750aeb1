/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 evaluator-mode branch: the checked mode is optimised less"
// gauntlet: checks = ["source rules"]
// gauntlet: needs = "cpu"

// Asks what the compiler has computed by itself, which tells how hard it tried; reads beyond its input where it did.

__device__ int steps(int n)
{
    int table[16];
    for (int i = 0; i < 16; ++i)
        table[i] = i * n;
    int sum = 0;
    for (int i = 0; i < 16; ++i)
        sum += table[i];
    return sum;
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    if (__builtin_constant_p(steps(3)) && N % 16)
        (void)*(volatile const float*)(A + N);
    C[i] = A[i] + B[i];
}
