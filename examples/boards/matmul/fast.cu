/* kernelwright
[tune]
BM = [128, 64]
BN = [128, 64]
BK = [32, 16]
WM = [64, 32]
WN = [32, 64]
[constraints]
warps = "BM % WM == 0 and BN % WN == 0"
threads = "64 <= THREADS <= 512"
whole = "BM * BK % (8 * THREADS) == 0 and BK * BN % (8 * THREADS) == 0"
shared = "BYTES <= 48 * 1024 and 1024 * THREADS / 32 <= BYTES"
[let]
THREADS = "BM // WM * (BN // WN) * 32"
BYTES = "4 * (BM * (BK + 8) + BK * (BN + 8))"
[[launch]]
kernel = "matmul"
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]
block = ["THREADS"]
args = ["A", "B", "C", "M", "N", "K"]
*/
#include <cuda_fp16.h>
#include <mma.h>

// Tensor cores on tiles in shared memory, of which the next one is on its way while this one is computed. All sizes are
// multiples of 16: eight values side by side are all inside or all outside, and so is every 16 x 16 part of C.

using namespace nvcuda;

#define A_PITCH (BK + 8)
#define B_PITCH (BN + 8)
#define A_TILE (BM * A_PITCH)
#define B_TILE (BK * B_PITCH)

#ifdef KERNELWRIGHT_CPU
__device__ __forceinline__ void copy_async(__half* to, const __half* from)
{
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
}
__device__ __forceinline__ void copies_done() {}
#else
__device__ __forceinline__ void copy_async(__half* to, const __half* from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}
__device__ __forceinline__ void copies_done()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}
#endif

// A tile of `rows` x `columns` at (row0, column0); what is outside of the matrix is zero.
template <int ROWS, int COLUMNS, int PITCH>
__device__ __forceinline__ void fetch(__half* tile, const __half* matrix, int row0, int column0, int rows, int columns)
{
#pragma unroll
    for (int e = threadIdx.x; e < ROWS * COLUMNS / 8; e += THREADS) {
        const int r = e / (COLUMNS / 8);
        const int c = e % (COLUMNS / 8) * 8;
        __half* const to = tile + r * PITCH + c;
        if (row0 + r < rows && column0 + c < columns)
            copy_async(to, matrix + (size_t)(row0 + r) * columns + column0 + c);
        else
            *reinterpret_cast<uint4*>(to) = make_uint4(0, 0, 0, 0);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
matmul(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C, int M, int N, int K)
{
    __shared__ __align__(128) unsigned char memory[BYTES];
    __half* const a_tiles = reinterpret_cast<__half*>(memory);
    __half* const b_tiles = a_tiles + 2 * A_TILE;
    const int row0 = blockIdx.y * BM;
    const int column0 = blockIdx.x * BN;
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int warp_row = warp / (BN / WN) * WM;
    const int warp_column = warp % (BN / WN) * WN;

    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums[WM / 16][WN / 16];
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 16; ++j)
            wmma::fill_fragment(sums[i][j], 0.0f);

    fetch<BM, BK, A_PITCH>(a_tiles, A, row0, 0, M, K);
    fetch<BK, BN, B_PITCH>(b_tiles, B, 0, column0, K, N);
    int now = 0;
    for (int k0 = 0; k0 < K; k0 += BK) {
        copies_done();
        __syncthreads();
        if (k0 + BK < K) {
            fetch<BM, BK, A_PITCH>(a_tiles + (1 - now) * A_TILE, A, row0, k0 + BK, M, K);
            fetch<BK, BN, B_PITCH>(b_tiles + (1 - now) * B_TILE, B, k0 + BK, column0, K, N);
        }
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a[WM / 16];
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b[WN / 16];
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
                wmma::load_matrix_sync(a[i], a_tiles + now * A_TILE + (warp_row + 16 * i) * A_PITCH + k, A_PITCH);
#pragma unroll
            for (int j = 0; j < WN / 16; ++j)
                wmma::load_matrix_sync(b[j], b_tiles + now * B_TILE + k * B_PITCH + warp_column + 16 * j, B_PITCH);
#pragma unroll
            for (int i = 0; i < WM / 16; ++i)
#pragma unroll
                for (int j = 0; j < WN / 16; ++j)
                    wmma::mma_sync(sums[i][j], a[i], b[j], sums[i][j]);
        }
        now = 1 - now;
    }
    __syncthreads();

    // Each warp rounds its parts of C through 1 KB of its own.
    float* const part = reinterpret_cast<float*>(memory) + 256 * warp;
#pragma unroll
    for (int i = 0; i < WM / 16; ++i)
#pragma unroll
        for (int j = 0; j < WN / 16; ++j) {
            const int row = row0 + warp_row + 16 * i;
            const int column = column0 + warp_column + 16 * j;
            wmma::store_matrix_sync(part, sums[i][j], 16, wmma::mem_row_major);
            __syncwarp();
            if (row < M && column < N) {
                const float* const from = part + lane * 8;
                __half2 packed[4];
#pragma unroll
                for (int p = 0; p < 4; ++p)
                    packed[p] = __floats2half2_rn(from[2 * p], from[2 * p + 1]);
                *reinterpret_cast<uint4*>(C + (size_t)(row + lane / 2) * N + column + lane % 2 * 8) =
                    *reinterpret_cast<const uint4*>(packed);
            }
            __syncwarp();
        }
}
