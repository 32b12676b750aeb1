/* kernelwright
[tune]
BM = [16, 32, 64, 128]
BN = [16, 32, 64, 128]
BK = [8, 16, 32, 64]
TM = [4, 8]
TN = [4, 8, 16, 32]
[constraints]
threads = "4 <= THREADS <= 1024 and BM >= TM and BN >= TN"
registers = "TM * TN <= 128 or (THREADS <= 32 and BM >= 32 and BN >= 64 and BK <= 32)"
shared = "4 * BK * (BM + 4 + BN) <= 48 * 1024"
work_per_load = "BK * (BM + BN) >= THREADS"
[let]
THREADS = "(BM // TM) * (BN // TN)"
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, BN)", "cdiv(M, BM)"]
block = ["THREADS"]
args = ["A", "B", "C", "M", "N", "K"]
*/

// A BM x BN tile of C a block and a TM x TN tile a thread: every value read from shared memory is used TM or TN
// times. A is stored transposed, so that a thread reads its rows four at a time. Loads are guarded, any size runs. Tiles
// of 8 x 32 are for a CPU, where few fat threads win; a GPU has not the registers.

#define COLUMNS (BN / TN)
#define GROUP_N (4 * COLUMNS)
#define GROUP_M (4 * (BM / TM))
#define A_STRIDE (BM + 4)

extern "C" __global__ void __launch_bounds__(THREADS)
gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K)
{
    __shared__ __align__(16) float a_tile[BK * A_STRIDE];
    __shared__ __align__(16) float b_tile[BK * BN];
    const int tid = threadIdx.x;
    const int tx = tid % COLUMNS;
    const int ty = tid / COLUMNS;
    const int m0 = blockIdx.y * BM;
    const int n0 = blockIdx.x * BN;

    float sum[TM][TN];
#pragma unroll
    for (int i = 0; i < TM; ++i)
#pragma unroll
        for (int j = 0; j < TN; ++j)
            sum[i][j] = 0.0f;

    for (int k0 = 0; k0 < K; k0 += BK) {
        for (int e = tid; e < BM * BK; e += THREADS) {
            const int m = e / BK;
            const int k = e % BK;
            const bool inside = m0 + m < M && k0 + k < K;
            a_tile[k * A_STRIDE + m] = inside ? A[(size_t)(m0 + m) * K + k0 + k] : 0.0f;
        }
        for (int e = tid; e < BK * BN; e += THREADS) {
            const int k = e / BN;
            const int n = e % BN;
            const bool inside = k0 + k < K && n0 + n < N;
            b_tile[e] = inside ? B[(size_t)(k0 + k) * N + n0 + n] : 0.0f;
        }
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < BK; ++k) {
            float a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i += 4) {
                const float4 v = *reinterpret_cast<const float4*>(a_tile + k * A_STRIDE + i / 4 * GROUP_M + ty * 4);
                a[i] = v.x, a[i + 1] = v.y, a[i + 2] = v.z, a[i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < TN; j += 4) {
                const float4 v = *reinterpret_cast<const float4*>(b_tile + k * BN + j / 4 * GROUP_N + tx * 4);
                b[j] = v.x, b[j + 1] = v.y, b[j + 2] = v.z, b[j + 3] = v.w;
            }
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j)
                    sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < TM; ++i) {
        const int row = m0 + i / 4 * GROUP_M + ty * 4 + i % 4;
#pragma unroll
        for (int j = 0; j < TN; ++j) {
            const int column = n0 + j / 4 * GROUP_N + tx * 4 + j % 4;
            if (row < M && column < N)
                C[(size_t)row * N + column] = sum[i][j];
        }
    }
}
