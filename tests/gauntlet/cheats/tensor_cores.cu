/* kernelwright
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [32]
args = ["A", "B", "C", "M", "N", "K"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "cheat"
// gauntlet: row = "34 tensor cores in a problem that forbids them"
// gauntlet: checks = ["source rules", "binary rules"]

// tf32 fragments of wmma.

#include <mma.h>

using namespace nvcuda;

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K)
{
    __shared__ float a[16 * 8], b[8 * 16], c[16 * 16];
    wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> left;
    wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::row_major> right;
    wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
    wmma::fill_fragment(sum, 0.0f);
    const int row = blockIdx.y * 16, column = blockIdx.x * 16;
    for (int k = 0; k < K; k += 8) {
        for (int e = threadIdx.x; e < 128; e += 32) {
            const int r = row + e / 8, d = k + e % 8, dd = k + e / 16, n = column + e % 16;
            a[e] = r < M && d < K ? A[(size_t)r * K + d] : 0.0f;
            b[e] = dd < K && n < N ? B[(size_t)dd * N + n] : 0.0f;
        }
        __syncwarp();
        wmma::load_matrix_sync(left, a, 8);
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
