/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: a binary of terabytes"
// gauntlet: checks = ["compile limits", "compiler", "binary rules", "launch limits", "source rules"]

// A constant array that no machine can hold.

__constant__ char padding[1ull << 42] = {1};

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i] + (padding[i] == 77 ? 1.0f : 0.0f);
}
