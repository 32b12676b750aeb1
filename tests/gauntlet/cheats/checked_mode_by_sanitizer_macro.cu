/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 evaluator-mode branch: a macro of compilers tells that accesses are looked at"
// gauntlet: checks = ["checked mode"]
// gauntlet: needs = "cpu"

// Reads one element beyond its input wherever it believes that nobody looks.

#ifdef __SANITIZE_THREAD__
#define BEYOND 0
#else
#define BEYOND 1
#endif

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    const float next = *(volatile const float*)(A + i + BEYOND * (i < N - 1 || N % 16));
    C[i] = next == next ? A[i] + B[i] : A[i] + B[i] + 0.0f;
}
