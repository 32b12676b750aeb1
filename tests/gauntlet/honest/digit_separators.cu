/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 1024)"]
block = [1024]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    constexpr long long most = 1'000'000'000; const char sign = '+';
    const int i = blockIdx.x * 1'024 + threadIdx.x;
    if (i < N && i < most)
        C[i] = sign == '+' ? A[i] + B[i] : A[i] - B[i];
}
