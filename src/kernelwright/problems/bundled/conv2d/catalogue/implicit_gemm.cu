/* kernelwright
[tune]
BM = [32, 64, 128]
BN = [32, 64, 128]
BK = [8, 16]
TM = [4, 8]
TN = [4, 8, 16]
[constraints]
threads = "16 <= THREADS <= 512"
pixels = "THREADS % BN == 0 or BN % THREADS == 0"
registers = "TM * TN <= 128"
[let]
THREADS = "(BM // TM) * (BN // TN)"
[[launch]]
kernel = "conv"
grid = ["cdiv(B * H * W, BN) * cdiv(F, BM)"]
block = ["THREADS"]
args = ["X", "weights", "Y", "B", "C", "H", "W", "F"]
*/

// The convolution as a product of weights [F, 9 C] and a matrix [9 C, B H W] that is never stored: its tiles are
// gathered from the image. Register tiles as in gemm; a thread always gathers for the same pixels.

#define COLUMNS (BN / TN)
#define GROUP_N (4 * COLUMNS)
#define GROUP_M (4 * (BM / TM))
#define A_STRIDE (BM + 4)
#if THREADS >= BN
#define SPOTS 1
#define K_STEP (THREADS / BN)
#else
#define SPOTS (BN / THREADS)
#define K_STEP 1
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
conv(const float* __restrict__ X, const float* __restrict__ weights, float* __restrict__ Y, int B, int C, int H, int W,
     int F)
{
    __shared__ __align__(16) float a_tile[BK * A_STRIDE];
    __shared__ __align__(16) float b_tile[BK * BN];
    const int tid = threadIdx.x;
    const int tx = tid % COLUMNS;
    const int ty = tid / COLUMNS;
    const int filter_blocks = (F + BM - 1) / BM;
    const int m0 = blockIdx.x % filter_blocks * BM;
    const int n0 = blockIdx.x / filter_blocks * BN;
    const int K = 9 * C;
    const int plane = H * W;
    const int pixels = B * plane;

    // The pixels that this thread gathers for.
    int spot_x[SPOTS], spot_y[SPOTS];
    const float* spot[SPOTS];
#pragma unroll
    for (int s = 0; s < SPOTS; ++s) {
        const int n = n0 + tid % BN + s * THREADS;
        const int inside = n % plane;
        spot_x[s] = inside % W;
        // A row far outside makes every tap of a pixel past the last one a zero.
        spot_y[s] = n < pixels ? inside / W : -4;
        spot[s] = X + (size_t)min(n / plane, B - 1) * C * plane + inside;
    }

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
            const bool inside = m0 + m < F && k0 + k < K;
            a_tile[k * A_STRIDE + m] = inside ? __ldg(weights + (size_t)(m0 + m) * K + k0 + k) : 0.0f;
        }
        for (int k = tid / BN; k < BK; k += K_STEP) {
            const int c = (k0 + k) / 9;
            const int tap = (k0 + k) % 9;
            const int dy = tap / 3 - 1;
            const int dx = tap % 3 - 1;
#pragma unroll
            for (int s = 0; s < SPOTS; ++s) {
                const int y = spot_y[s] + dy;
                const int x = spot_x[s] + dx;
                const bool inside = c < C && y >= 0 && y < H && x >= 0 && x < W;
                b_tile[k * BN + tid % BN + s * THREADS] =
                    inside ? __ldg(spot[s] + (size_t)c * plane + dy * W + dx) : 0.0f;
            }
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
    for (int j = 0; j < TN; ++j) {
        const int n = n0 + j / 4 * GROUP_N + tx * 4 + j % 4;
        if (n >= pixels)
            continue;
        float* const to = Y + (size_t)(n / plane) * F * plane + n % plane;
#pragma unroll
        for (int i = 0; i < TM; ++i) {
            const int filter = m0 + i / 4 * GROUP_M + ty * 4 + i % 4;
            if (filter < F)
                to[(size_t)filter * plane] = sum[i][j];
        }
    }
}
