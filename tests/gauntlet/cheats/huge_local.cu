/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: huge local memory"
// gauntlet: checks = ["crash", "checked mode", "launch limits", "binary rules", "compiler", "run limits"]

// Every thread keeps two megabytes of its own.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    volatile float own[512 * 1024];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 512 * 1024; k += 1024)
        own[k + i % 1024] = k;
    if (i < N)
        C[i] = A[i] + B[i] + 0.0f * own[i % 512 * 1024];
}
