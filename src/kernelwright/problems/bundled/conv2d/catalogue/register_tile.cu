/* kernelwright
[tune]
TX = [16, 32]
TY = [2, 4, 8, 16]
PIXELS = [4, 8]
FILTERS = [4, 8]
GROUPS = [1, 2, 4, 8]
CHANNELS = [1, 2, 4, 8]
[constraints]
threads = "4 <= THREADS <= 512"
shared = "4 * (IMAGE_FLOATS + WEIGHT_FLOATS) <= 48 * 1024"
[let]
SPOTS = "TX * TY // PIXELS"
THREADS = "SPOTS * GROUPS"
BLOCK_FILTERS = "FILTERS * GROUPS"
STRIDE = "TX + 4"
IMAGE_FLOATS = "CHANNELS * (TY + 2) * STRIDE"
WEIGHT_FLOATS = "CHANNELS * 9 * (BLOCK_FILTERS + 4)"
[[launch]]
kernel = "conv"
grid = ["cdiv(W, TX)", "cdiv(H, TY)", "B * cdiv(F, BLOCK_FILTERS)"]
block = ["THREADS"]
args = ["X", "weights", "Y", "C", "H", "W", "F"]
*/

// A block does TX x TY pixels of BLOCK_FILTERS filters, CHANNELS channels at a time: the image with its border and the
// transposed weights are in shared memory. A thread does PIXELS pixels of a row for FILTERS filters: a row of the
// image, once in registers, serves three taps of all filters.

#define WEIGHT_STRIDE (BLOCK_FILTERS + 4)
#define ROW (PIXELS + 4)

extern "C" __global__ void __launch_bounds__(THREADS)
conv(const float* __restrict__ X, const float* __restrict__ weights, float* __restrict__ Y, int C, int H, int W, int F)
{
    __shared__ __align__(16) float image[IMAGE_FLOATS];
    __shared__ __align__(16) float taps[WEIGHT_FLOATS];
    const int blocks = (F + BLOCK_FILTERS - 1) / BLOCK_FILTERS;
    const int b = blockIdx.z / blocks;
    const int f0 = blockIdx.z % blocks * BLOCK_FILTERS;
    const int x0 = blockIdx.x * TX;
    const int y0 = blockIdx.y * TY;
    const int tid = threadIdx.x;
    const int spot = tid % SPOTS;
    const int group = tid / SPOTS;
    const int tx = spot % (TX / PIXELS) * PIXELS;
    const int ty = spot / (TX / PIXELS);

    float sum[FILTERS][PIXELS];
#pragma unroll
    for (int f = 0; f < FILTERS; ++f)
#pragma unroll
        for (int p = 0; p < PIXELS; ++p)
            sum[f][p] = 0.0f;

    for (int c0 = 0; c0 < C; c0 += CHANNELS) {
        // Column 0 of the image in shared memory is pixel x0 - 1; channels past the last are zeros.
        for (int e = tid; e < IMAGE_FLOATS; e += THREADS) {
            const int c = c0 + e / ((TY + 2) * STRIDE);
            const int y = y0 + e / STRIDE % (TY + 2) - 1;
            const int x = x0 + e % STRIDE - 1;
            const bool inside = c < C && y >= 0 && y < H && x >= 0 && x < W;
            image[e] = inside ? __ldg(X + (((size_t)b * C + c) * H + y) * W + x) : 0.0f;
        }
        for (int e = tid; e < CHANNELS * 9 * BLOCK_FILTERS; e += THREADS) {
            const int tap = e % (CHANNELS * 9);
            const int f = e / (CHANNELS * 9);
            const bool inside = f0 + f < F && c0 + tap / 9 < C;
            taps[tap * WEIGHT_STRIDE + f] = inside ? __ldg(weights + ((size_t)(f0 + f) * C + c0) * 9 + tap) : 0.0f;
        }
        __syncthreads();
#pragma unroll 1
        for (int c = 0; c < CHANNELS; ++c) {
#pragma unroll
            for (int i = 0; i < 3; ++i) {
                float row[ROW];
                const float* const from = image + (c * (TY + 2) + ty + i) * STRIDE + tx;
#pragma unroll
                for (int p = 0; p < ROW; p += 4) {
                    const float4 v = *reinterpret_cast<const float4*>(from + p);
                    row[p] = v.x, row[p + 1] = v.y, row[p + 2] = v.z, row[p + 3] = v.w;
                }
#pragma unroll
                for (int j = 0; j < 3; ++j) {
                    const float* const w = taps + (c * 9 + i * 3 + j) * WEIGHT_STRIDE + group * FILTERS;
#pragma unroll
                    for (int f = 0; f < FILTERS; f += 4) {
                        const float4 v = *reinterpret_cast<const float4*>(w + f);
#pragma unroll
                        for (int p = 0; p < PIXELS; ++p) {
                            sum[f][p] = fmaf(v.x, row[p + j], sum[f][p]);
                            sum[f + 1][p] = fmaf(v.y, row[p + j], sum[f + 1][p]);
                            sum[f + 2][p] = fmaf(v.z, row[p + j], sum[f + 2][p]);
                            sum[f + 3][p] = fmaf(v.w, row[p + j], sum[f + 3][p]);
                        }
                    }
                }
            }
        }
        __syncthreads();
    }

    const int y = y0 + ty;
    if (y >= H)
        return;
#pragma unroll
    for (int f = 0; f < FILTERS; ++f) {
        const int filter = f0 + group * FILTERS + f;
        float* const to = Y + (((size_t)b * F + filter) * H + y) * W + x0 + tx;
#pragma unroll
        for (int p = 0; p < PIXELS; ++p)
            if (filter < F && x0 + tx + p < W)
                to[p] = sum[f][p];
    }
}
