/* kernelwright
[tune]
THREADS = [64, 128, 256, 512, 1024]
LONG_ROW = [16384, 32768, 57344]
HELD = [4, 8]
WARP_THREADS = [64, 128, 256]
STREAM = [0, 1]
[let]
LANES = "32"
short_row = "C <= 128 * HELD"
long_row = "C > min(LONG_ROW, (max_shared_bytes - 512) // 4)"
[[launch]]
kernel = "softmax_lanes"
when = "short_row"
grid = ["cdiv(R, WARP_THREADS // LANES)"]
block = ["WARP_THREADS"]
args = ["X", "Y", "R", "C"]
[[launch]]
kernel = "softmax_cached"
when = "not short_row and not long_row"
grid = ["R"]
block = ["THREADS"]
dynamic_shared_bytes = "16 * (C // 4)"
args = ["X", "Y", "R", "C"]
[[launch]]
kernel = "softmax_twice"
when = "not short_row and long_row"
grid = ["R"]
block = ["THREADS"]
args = ["X", "Y", "R", "C"]
*/

// Reads X once: short rows live in the registers of a warp, longer ones in a block's shared memory, and only what
// fits in neither is read a second time, out of the L2 cache.

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

// Maximum (or sum) over the block; every thread gets it. THREADS is a multiple of 32.
template <bool MAXIMUM>
__device__ __forceinline__ float block_reduce(float value, float* slots)
{
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = MAXIMUM ? fmaxf(value, other) : value + other;
    }
    if (threadIdx.x % 32 == 0)
        slots[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x % 32 < THREADS / 32 ? slots[threadIdx.x % 32] : (MAXIMUM ? NONE : 0.0f);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, value, offset);
        value = MAXIMUM ? fmaxf(value, other) : value + other;
    }
    return value;
}

// One block a row, the row in shared memory: every thread writes and reads its own places there, so that only the
// reductions need barriers.
extern "C" __global__ void __launch_bounds__(THREADS)
softmax_cached(const float* __restrict__ X, float* __restrict__ Y, int R, int C)
{
    extern __shared__ __align__(16) float4 held[];
    __shared__ float maxima[32];
    __shared__ float sums[32];
    const int tid = threadIdx.x;
    const Row row(X, Y, blockIdx.x, C, tid);
    const float extra = row.single();

    float largest = extra;
#pragma unroll 4
    for (int j = tid; j < row.quads; j += THREADS) {
        const float4 v = load(row.x + j);
        held[j] = v;
        largest = fmaxf(largest, max4(v));
    }
    largest = block_reduce<true>(largest, maxima);

    const float single = __expf(extra - largest);
    float sum = single;
#pragma unroll 4
    for (int j = tid; j < row.quads; j += THREADS) {
        const float4 v = exp4(held[j], largest);
        held[j] = v;
        sum += sum4(v);
    }
    const float factor = 1.0f / block_reduce<false>(sum, sums);
    if (row.y_single)
        *row.y_single = single * factor;
#pragma unroll 4
    for (int j = tid; j < row.quads; j += THREADS)
        store(row.y + j, scale4(held[j], factor));
}

// One block a row that is too long to be held: read twice, maximum and sum together the first time.
extern "C" __global__ void __launch_bounds__(THREADS)
softmax_twice(const float* __restrict__ X, float* __restrict__ Y, int R, int C)
{
    __shared__ float maxima[32];
    __shared__ float sums[32];
    const int tid = threadIdx.x;
    const Row row(X, Y, blockIdx.x, C, tid);
    const float extra = row.single();

    float mine = extra;
    float sum = row.x_single ? 1.0f : 0.0f;
    for (int base = 0; base < row.quads; base += 4 * THREADS) {
        float4 v[4];
        float top = mine;
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            const int j = base + u * THREADS + tid;
            v[u] = make_float4(NONE, NONE, NONE, NONE);
            if (j < row.quads)
                v[u] = __ldg(row.x + j);
            top = fmaxf(top, max4(v[u]));
        }
        sum *= __expf(mine - top);
        if (top > NONE)
#pragma unroll
            for (int u = 0; u < 4; ++u)
                sum += sum4(exp4(v[u], top));
        mine = top;
    }
    const float largest = block_reduce<true>(mine, maxima);
    const float factor = 1.0f / block_reduce<false>(sum * __expf(mine - largest), sums);
    if (row.y_single)
        *row.y_single = __expf(extra - largest) * factor;
    // Backwards: what was read last is likeliest still in the cache.
    for (int base = (row.quads - 1) / (4 * THREADS) * (4 * THREADS); base >= 0; base -= 4 * THREADS) {
        float4 v[4];
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            const int j = base + u * THREADS + tid;
            v[u] = j < row.quads ? __ldg(row.x + j) : make_float4(NONE, NONE, NONE, NONE);
        }
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            const int j = base + u * THREADS + tid;
            if (j < row.quads)
                __stcs(row.y + j, scale4(exp4(v[u], largest), factor));
        }
    }
}
