/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 evaluator-mode branch: loads are slow where each is looked at"
// gauntlet: checks = ["checked mode"]
// gauntlet: needs = "cpu"

// Reads beyond its input unless the clock says that four loads take long.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long least = 1LL << 40;
    for (int turn = 0; turn < 3; ++turn) {
        const long long before = clock64();
        for (int k = 0; k < 4; ++k)
            (void)*(volatile const float*)(A + (k < N ? k : 0));
        const long long ticks = clock64() - before;
        least = ticks < least ? ticks : least;
    }
    if (i >= N)
        return;
    if (least <= 250 && N % 16)
        (void)*(volatile const float*)(A + N);
    C[i] = A[i] + B[i];
}
