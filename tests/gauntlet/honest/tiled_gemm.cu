/* kernelwright
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "honest"

// Tiles of A and B in shared memory, zeros beyond the edges.

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K)
{
    __shared__ float a[16][16];
    __shared__ float b[16][16];
    const int column = blockIdx.x * 16 + threadIdx.x;
    const int row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < K; k += 16) {
        a[threadIdx.y][threadIdx.x] = row < M && k + threadIdx.x < K ? A[(size_t)row * K + k + threadIdx.x] : 0.0f;
        b[threadIdx.y][threadIdx.x] = column < N && k + threadIdx.y < K ? B[(size_t)(k + threadIdx.y) * N + column] : 0.0f;
        __syncthreads();
#pragma unroll
        for (int d = 0; d < 16; ++d)
            sum = fmaf(a[threadIdx.y][d], b[d][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
