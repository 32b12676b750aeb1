/* kernelwright
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 64)", "cdiv(M, 32)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "honest"

// Two rows and four columns a thread, in registers.

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K)
{
    const int column = blockIdx.x * 64 + threadIdx.x;
    const int row = blockIdx.y * 32 + threadIdx.y * 2;
    float sum[2][4] = {};
    for (int k = 0; k < K; ++k)
#pragma unroll
        for (int r = 0; r < 2; ++r)
#pragma unroll
            for (int c = 0; c < 4; ++c)
                if (row + r < M && column + c * 16 < N)
                    sum[r][c] += A[(size_t)(row + r) * K + k] * B[(size_t)k * N + column + c * 16];
    for (int r = 0; r < 2; ++r)
        for (int c = 0; c < 4; ++c)
            if (row + r < M && column + c * 16 < N)
                C[(size_t)(row + r) * N + column + c * 16] = sum[r][c];
}
