/* kernelwright
[tune]
LANES = [8, 16, 32]
HELD = [1, 2, 4, 8, 16]
WARP_THREADS = [32, 64, 128, 256]
STREAM = [0, 1]
[constraints]
registers = "HELD * WARP_THREADS <= 2048"
[[launch]]
kernel = "softmax_lanes"
grid = ["cdiv(R, WARP_THREADS // LANES)"]
block = ["WARP_THREADS"]
args = ["X", "Y", "R", "C"]
*/

// Part of a warp a row: no shared memory and no barrier, several rows a block. Suits short rows.

#define NONE (-1e38f)

__device__ __forceinline__ float4 load(const float4* p)
{
#if STREAM
    return __ldcs(p);
#else
    return __ldg(p);
#endif
}

__device__ __forceinline__ void store(float4* p, float4 v)
{
#if STREAM
    __stcs(p, v);
#else
    *p = v;
#endif
}

__device__ __forceinline__ float max4(float4 v)
{
    return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}

__device__ __forceinline__ float4 exp4(float4 v, float top)
{
    return make_float4(__expf(v.x - top), __expf(v.y - top), __expf(v.z - top), __expf(v.w - top));
}

__device__ __forceinline__ float4 scale4(float4 v, float factor)
{
    return make_float4(v.x * factor, v.y * factor, v.z * factor, v.w * factor);
}

__device__ __forceinline__ float sum4(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

// A row of any length cut at 16-byte boundaries: up to 3 scalars, `quads` float4, up to 3 scalars. X and Y are cut at
// the same places. Thread `t` of the row's threads (at least 8) owns at most one of the scalars.
struct Row {
    const float4* x;
    float4* y;
    int quads;
    const float* x_single;
    float* y_single;

    __device__ __forceinline__ Row(const float* X, float* Y, int row, int C, int t)
    {
        const size_t start = (size_t)row * C;
        const int head = min(C, (int)((4 - start % 4) % 4));
        quads = (C - head) / 4;
        const int tail = C - head - 4 * quads;
        x = reinterpret_cast<const float4*>(X + start + head);
        y = reinterpret_cast<float4*>(Y + start + head);
        x_single = nullptr;
        y_single = nullptr;
        if (t < head + tail) {
            const size_t at = start + (t < head ? t : 4 * quads + t);
            x_single = X + at;
            y_single = Y + at;
        }
    }

    __device__ __forceinline__ float single() const
    {
        return x_single ? *x_single : NONE;
    }
};

// LANES threads a row, the row in registers; rows longer than that are read twice.
extern "C" __global__ void __launch_bounds__(WARP_THREADS)
softmax_lanes(const float* __restrict__ X, float* __restrict__ Y, int R, int C)
{
    const int lane = threadIdx.x % LANES;
    const int wanted = blockIdx.x * (WARP_THREADS / LANES) + threadIdx.x / LANES;
    // Threads past the last row go along, so that the shuffles stay whole, but write nothing.
    const int index = min(wanted, R - 1);
    const Row row(X, Y, index, C, lane);
    const float extra = row.single();
    const bool cached = row.quads <= LANES * HELD;

    float4 v[HELD];
    float largest = extra;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
        v[k] = make_float4(NONE, NONE, NONE, NONE);
        if (lane + k * LANES < row.quads)
            v[k] = load(row.x + lane + k * LANES);
    }
#pragma unroll
    for (int k = 0; k < HELD; ++k)
        largest = fmaxf(largest, max4(v[k]));
    if (!cached)
        for (int j = lane + HELD * LANES; j < row.quads; j += LANES)
            largest = fmaxf(largest, max4(load(row.x + j)));
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset, LANES));

    const float single = __expf(extra - largest);
    sum = single;
#pragma unroll
    for (int k = 0; k < HELD; ++k) {
        v[k] = exp4(v[k], largest);
        sum += sum4(v[k]);
    }
    if (!cached)
        for (int j = lane + HELD * LANES; j < row.quads; j += LANES)
            sum += sum4(exp4(load(row.x + j), largest));
#pragma unroll
    for (int offset = LANES / 2; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, offset, LANES);

    const float factor = 1.0f / sum;
    if (wanted >= R)
        return;
    if (row.y_single)
        *row.y_single = single * factor;
#pragma unroll
    for (int k = 0; k < HELD; ++k)
        if (lane + k * LANES < row.quads)
            store(row.y + lane + k * LANES, scale4(v[k], factor));
    if (!cached)
        for (int j = lane + HELD * LANES; j < row.quads; j += LANES)
            store(row.y + j, scale4(exp4(load(row.x + j), largest), factor));
}
