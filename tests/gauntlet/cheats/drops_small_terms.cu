/* kernelwright
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "cheat"
// gauntlet: row = "34 dropped terms"
// gauntlet: checks = ["stress inputs"]

// Products below 1e-6 are left out: invisible until all of them are.

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K)
{
    const int column = blockIdx.x * 16 + threadIdx.x;
    const int row = blockIdx.y * 16 + threadIdx.y;
    if (row >= M || column >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        const float product = A[(size_t)row * K + k] * B[(size_t)k * N + column];
        sum += fabsf(product) < 1e-6f ? 0.0f : product;
    }
    C[(size_t)row * N + column] = sum;
}
