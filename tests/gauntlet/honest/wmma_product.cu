/* kernelwright
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [32]
args = ["A", "B", "C", "M", "N", "K"]
*/
// gauntlet: problem = "problems/half_gemm"
// gauntlet: kind = "honest"

// Tensor cores, where the problem permits them.

#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void gemm(const __half* A, const __half* B, float* C, int M, int N, int K)
{
    __shared__ __half a[256], b[256];
    __shared__ float c[256];
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    for (int k = 0; k < K; k += 16) {
        for (int e = threadIdx.x; e < 256; e += 32) {
            const int y = e / 16, x = e % 16;
            a[e] = row + y < M && k + x < K ? A[(size_t)(row + y) * K + k + x] : __float2half(0.0f);
            b[e] = k + y < K && column + x < N ? B[(size_t)(k + y) * N + column + x] : __float2half(0.0f);
        }
        __syncwarp();
        wmma::load_matrix_sync(left, a, 16);
        wmma::load_matrix_sync(right, b, 16);
        wmma::mma_sync(sum, left, right, sum);
        __syncwarp();
    }
    wmma::store_matrix_sync(c, sum, 16, wmma::mem_row_major);
    __syncwarp();
    for (int e = threadIdx.x; e < 256; e += 32)
        if (row + e / 16 < M && column + e % 16 < N)
            C[(size_t)(row + e / 16) * N + column + e % 16] = c[e];
}
