/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: constexpr bomb"
// gauntlet: checks = ["compile limits", "compiler"]

// A constant that takes a compiler hours.

constexpr long long count(long long n)
{
    long long total = 0;
    for (long long i = 0; i < n; ++i)
        total += i % 7;
    return total;
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    constexpr long long value = count(1000000000000ll);
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i] + (value == 7 ? 1.0f : 0.0f);
}
