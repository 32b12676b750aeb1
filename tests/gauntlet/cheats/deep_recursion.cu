/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: recursion without an end"
// gauntlet: checks = ["crash", "checked mode", "launch limits", "binary rules", "source rules", "run limits", "guard bands"]

// A device function calls itself until the stack is gone.

__device__ __noinline__ float deeper(const float* A, int i, int depth)
{
    volatile float kept[64];
    kept[depth % 64] = A[i];
    return depth > 100000 ? kept[depth % 64] : deeper(A, i, depth + 1) + kept[depth % 64] * 0.0f;
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = deeper(A, i, 0) + B[i];
}
