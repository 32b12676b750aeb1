/* kernelwright
[tune]
TX = [16, 32]
TY = [4, 8, 16]
FILTERS = [1, 4, 8]
[constraints]
threads = "TX * TY <= 512"
[[launch]]
kernel = "conv"
grid = ["cdiv(W, TX)", "cdiv(H, TY)", "B * cdiv(F, FILTERS)"]
block = ["TX", "TY"]
args = ["X", "weights", "Y", "C", "H", "W", "F"]
*/

// A TX x TY tile of pixels a block, one channel at a time with its border through shared memory; a thread does one
// pixel of FILTERS filters.

extern "C" __global__ void __launch_bounds__(TX * TY)
conv(const float* __restrict__ X, const float* __restrict__ weights, float* __restrict__ Y, int C, int H, int W, int F)
{
    __shared__ float tile[TY + 2][TX + 2];
    const int groups = (F + FILTERS - 1) / FILTERS;
    const int b = blockIdx.z / groups;
    const int f0 = blockIdx.z % groups * FILTERS;
    const int x0 = blockIdx.x * TX;
    const int y0 = blockIdx.y * TY;
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;

    float sum[FILTERS];
#pragma unroll
    for (int f = 0; f < FILTERS; ++f)
        sum[f] = 0.0f;
    for (int c = 0; c < C; ++c) {
        const float* const plane = X + ((size_t)b * C + c) * H * W;
        for (int e = ty * TX + tx; e < (TY + 2) * (TX + 2); e += TX * TY) {
            const int y = y0 + e / (TX + 2) - 1;
            const int x = x0 + e % (TX + 2) - 1;
            const bool inside = y >= 0 && y < H && x >= 0 && x < W;
            tile[e / (TX + 2)][e % (TX + 2)] = inside ? plane[(size_t)y * W + x] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int f = 0; f < FILTERS; ++f) {
            const float* const w = weights + ((size_t)min(f0 + f, F - 1) * C + c) * 9;
#pragma unroll
            for (int i = 0; i < 3; ++i)
#pragma unroll
                for (int j = 0; j < 3; ++j)
                    sum[f] = fmaf(__ldg(w + i * 3 + j), tile[ty + i][tx + j], sum[f]);
        }
        __syncthreads();
    }
    const int x = x0 + tx;
    const int y = y0 + ty;
#pragma unroll
    for (int f = 0; f < FILTERS; ++f)
        if (f0 + f < F && y < H && x < W)
            Y[(((size_t)b * F + f0 + f) * H + y) * W + x] = sum[f];
}
