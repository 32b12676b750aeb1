/* kernelwright
[tune]
HELD = [4, 8, 16]
MAX_THREADS = [256, 512, 1024]
MIN_THREADS = [64, 128, 256]
CLUSTER = [2, 4, 8]
PREFETCH = [0, 1]
STREAM = [0, 1]
THREADS = [256, 512, 1024]
[constraints]
registers = "4096 <= HELD * MAX_THREADS <= 8192"
least = "MIN_THREADS <= MAX_THREADS"
[let]
row_threads = "max(1, C // (4 * HELD))"
power = "C % (4 * HELD) == 0 and row_threads == ceil_pow2(row_threads) and row_threads * HELD >= 128"
block_threads = "max(MIN_THREADS, min(MAX_THREADS, row_threads))"
in_block = "power and row_threads <= MAX_THREADS and R * row_threads % block_threads == 0"
in_cluster = "power and MAX_THREADS < row_threads <= MAX_THREADS * CLUSTER"
split_threads = "max(1, row_threads // CLUSTER)"
block_room = "max(1, 8192 // (HELD * block_threads)) * num_sms"
cluster_room = "max(1, 8192 // (HELD * split_threads)) * num_sms // 16 * 16"
LANES = "32"
WARP_THREADS = "128"
fits_warp = "C <= 128 * HELD"
fits_shared = "C <= (max_shared_bytes - 512) // 4"
[[launch]]
kernel = "softmax_block"
when = "in_block"
grid = ["min(R * row_threads // block_threads, block_room if PREFETCH else 2147483647)"]
block = ["block_threads"]
dynamic_shared_bytes = "PREFETCH * 16 * HELD * block_threads"
args = ["X", "Y", "R", "C", "row_threads"]
[[launch]]
kernel = "softmax_cluster"
when = "in_cluster"
grid = ["min(R * CLUSTER, max(16, cluster_room) if PREFETCH else 2147483647)"]
block = ["split_threads"]
cluster = ["CLUSTER"]
dynamic_shared_bytes = "PREFETCH * 16 * HELD * split_threads"
args = ["X", "Y", "R", "C"]
[[launch]]
kernel = "softmax_cached"
when = "not in_block and not in_cluster and fits_shared and not fits_warp"
grid = ["R"]
block = ["THREADS"]
dynamic_shared_bytes = "16 * (C // 4)"
args = ["X", "Y", "R", "C"]
[[launch]]
kernel = "softmax_lanes"
when = "not in_block and not in_cluster and (fits_warp or not fits_shared)"
grid = ["cdiv(R, WARP_THREADS // LANES)"]
block = ["WARP_THREADS"]
args = ["X", "Y", "R", "C"]
*/

// Every thread keeps HELD float4 of one row in registers, so X is read once. A row whose length is HELD * 4 times a
// power of two takes part of a warp, a warp, several warps, or all blocks of a cluster, which exchange (maximum, sum)
// pairs through distributed shared memory. PREFETCH 1: persistent blocks, and a thread fetches its part of the next
// tile with cp.async while it works on this one. Other rows live in the registers of a warp or in shared memory.

#define LOG2E 1.4426950408889634f
#define NONE_LOG2 (-1.4426950408889634e38f)

#ifdef KERNELWRIGHT_CPU
__device__ __forceinline__ float exp2_fast(float x)
{
    return exp2f(x);
}
__device__ __forceinline__ void copy_async(float4* to, const float4* from)
{
    *to = *from;
}
__device__ __forceinline__ void copy_wait() {}
// All groups of a block meet equally often, so a barrier of the whole block does as well.
__device__ __forceinline__ void group_barrier(int group, int threads)
{
    __syncthreads();
}
#else
__device__ __forceinline__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ void copy_async(float4* to, const float4* from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                 : "memory");
}

__device__ __forceinline__ void copy_wait()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

// Named barrier: at most 4 groups of at least 64 threads, barrier 0 is __syncthreads.
__device__ __forceinline__ void group_barrier(int group, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "r"(threads) : "memory");
}
#endif

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

// Combines `count` pairs (maximum * log2(e), sum); every lane of the warp gets the result.
__device__ __forceinline__ float2 combine(const float2* pairs, int count)
{
    float top = NONE_LOG2;
    float sum = 0.0f;
#pragma unroll 1
    for (int j = threadIdx.x % 32; j < count; j += 32) {
        const float2 pair = pairs[j];
        const float larger = fmaxf(top, pair.x);
        sum = sum * exp2_fast(top - larger) + pair.y * exp2_fast(pair.x - larger);
        top = larger;
    }
    float all = top;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        all = fmaxf(all, __shfl_xor_sync(0xffffffffu, all, offset));
    sum *= exp2_fast(top - all);
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    return make_float2(all, sum);
}

// One thread's share of a tile in registers. SHARERS threads of a warp share a row, or whole warps do (32).
template <int SHARERS>
struct Share {
    float4 v[HELD];
    float top;
    float sum;

    __device__ __forceinline__ void fetch(float4* buffer, const float4* from) const
    {
#pragma unroll
        for (int i = 0; i < HELD; ++i)
            copy_async(buffer + i * 32, from + i * SHARERS);
    }

    // PREFETCH: takes the tile from the buffer, whose places only this thread uses, and fetches the next one.
    __device__ __forceinline__ void take(float4* buffer, const float4* from, const float4* next)
    {
#if PREFETCH
        copy_wait();
#pragma unroll
        for (int i = 0; i < HELD; ++i)
            v[i] = buffer[i * 32];
        if (next)
            fetch(buffer, next);
#else
#pragma unroll
        for (int i = 0; i < HELD; ++i)
            v[i] = load(from + i * SHARERS);
#endif
    }

    // Turns the share into exponentials; `top` (in units of log2) and `sum` are those of the SHARERS threads.
    __device__ __forceinline__ void exponentiate()
    {
        float largest = NONE;
#pragma unroll
        for (int i = 0; i < HELD; ++i)
            largest = fmaxf(largest, max4(v[i]));
#pragma unroll
        for (int offset = SHARERS / 2; offset > 0; offset /= 2)
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, offset));
        top = largest * LOG2E;
        float low = 0.0f;
        float high = 0.0f;
#pragma unroll
        for (int i = 0; i < HELD; ++i) {
            v[i].x = exp2_fast(fmaf(v[i].x, LOG2E, -top));
            v[i].y = exp2_fast(fmaf(v[i].y, LOG2E, -top));
            v[i].z = exp2_fast(fmaf(v[i].z, LOG2E, -top));
            v[i].w = exp2_fast(fmaf(v[i].w, LOG2E, -top));
            low += v[i].x + v[i].y;
            high += v[i].z + v[i].w;
        }
        sum = low + high;
#pragma unroll
        for (int offset = SHARERS / 2; offset > 0; offset /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, offset);
    }

    __device__ __forceinline__ void put(float4* to, float factor) const
    {
#pragma unroll
        for (int i = 0; i < HELD; ++i)
            store(to + i * SHARERS, scale4(v[i], factor));
    }
};

// Place of a thread's first float4 in a tile of blockDim.x * HELD.
template <int SHARERS>
__device__ __forceinline__ int first_place()
{
    const int lane = threadIdx.x % 32;
    return threadIdx.x / 32 * (32 * HELD) + lane / SHARERS * (SHARERS * HELD) + lane % SHARERS;
}

template <int SHARERS>
__device__ __forceinline__ void rows_in_block(const float* __restrict__ X, float* __restrict__ Y, int R, int C,
                                              int row_threads, float2* slots, float4* buffer)
{
    const int tile_quads = blockDim.x * HELD;
    const int tiles = (int)((long long)R * (C / 4) / tile_quads);
    const float4* const x = reinterpret_cast<const float4*>(X) + first_place<SHARERS>();
    float4* const y = reinterpret_cast<float4*>(Y) + first_place<SHARERS>();
    const int warp = threadIdx.x / 32;
    const int row_warps = row_threads / 32;
    buffer += warp * (32 * HELD) + threadIdx.x % 32;

    Share<SHARERS> share;
#if PREFETCH
    if (blockIdx.x < tiles)
        share.fetch(buffer, x + (size_t)blockIdx.x * tile_quads);
#endif
    int turn = 0;
#pragma unroll 1
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, turn ^= 1) {
        const int next = tile + gridDim.x;
        share.take(buffer, x + (size_t)tile * tile_quads, next < tiles ? x + (size_t)next * tile_quads : nullptr);
        share.exponentiate();
        float factor = 1.0f / share.sum;
        if (SHARERS == 32 && row_warps > 1) {
            // Two sets of slots in turn: one barrier a tile is enough.
            float2* const mine = slots + turn * 32;
            const int group = warp / row_warps;
            if (threadIdx.x % 32 == 0)
                mine[warp] = make_float2(share.top, share.sum);
            __syncwarp();
            group_barrier(group, row_threads);
            const float2 all = combine(mine + group * row_warps, row_warps);
            factor = exp2_fast(share.top - all.x) / all.y;
        }
        share.put(y + (size_t)tile * tile_quads, factor);
    }
}

extern "C" __global__ void __launch_bounds__(MAX_THREADS, 8192 / (HELD * MAX_THREADS))
softmax_block(const float* __restrict__ X, float* __restrict__ Y, int R, int C, int row_threads)
{
    extern __shared__ __align__(16) float4 held[];
    __shared__ float2 slots[64];
    if (row_threads >= 32)
        rows_in_block<32>(X, Y, R, C, row_threads, slots, held);
#if HELD >= 8
    else if (row_threads == 16)
        rows_in_block<16>(X, Y, R, C, row_threads, slots, held);
#endif
#if HELD >= 16
    else if (row_threads == 8)
        rows_in_block<8>(X, Y, R, C, row_threads, slots, held);
#endif
}

#ifdef KERNELWRIGHT_CPU
// The cpu device runs no clusters: these are the steps for a cluster of one block.
__device__ __forceinline__ void cluster_arrive() {}
__device__ __forceinline__ void cluster_wait()
{
    __syncthreads();
}
__device__ __forceinline__ void put_remote(float2* place, int rank, float2 pair)
{
    *place = pair;
}
#else
__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Writes a pair to the same place in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ void put_remote(float2* place, int rank, float2 pair)
{
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(remote)
                 : "r"((unsigned)__cvta_generic_to_shared(place)), "r"(rank));
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(remote), "f"(pair.x), "f"(pair.y) : "memory");
}
#endif

// A cluster a row; every block has its share of the row as its tile.
extern "C" __global__ void __launch_bounds__(MAX_THREADS, 8192 / (HELD * MAX_THREADS))
softmax_cluster(const float* __restrict__ X, float* __restrict__ Y, int R, int C)
{
    extern __shared__ __align__(16) float4 held[];
    __shared__ float2 slots[2 * CLUSTER * 32];
    const int tile_quads = blockDim.x * HELD;
    const int tiles = R * CLUSTER;
    const float4* const x = reinterpret_cast<const float4*>(X) + first_place<32>();
    float4* const y = reinterpret_cast<float4*>(Y) + first_place<32>();
    const int warp = threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const int warps = blockDim.x / 32;
    const int rank = blockIdx.x % CLUSTER;
    float4* const buffer = held + warp * (32 * HELD) + lane;

    // Peers must be running before their shared memory is written.
    cluster_arrive();
    Share<32> share;
#if PREFETCH
    if (blockIdx.x < tiles)
        share.fetch(buffer, x + (size_t)blockIdx.x * tile_quads);
#endif
    cluster_wait();
    int turn = 0;
#pragma unroll 1
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, turn ^= 1) {
        const int next = tile + gridDim.x;
        share.take(buffer, x + (size_t)tile * tile_quads, next < tiles ? x + (size_t)next * tile_quads : nullptr);
        share.exponentiate();
        // Two sets of slots in turn: a block two tiles ahead would have to pass a barrier that its peers have not.
        float2* const mine = slots + turn * (CLUSTER * 32);
        if (lane < CLUSTER)
            put_remote(mine + rank * warps + warp, lane, make_float2(share.top, share.sum));
        __syncwarp();
        cluster_arrive();
        cluster_wait();
        const float2 all = combine(mine, CLUSTER * warps);
        share.put(y + (size_t)tile * tile_quads, exp2_fast(share.top - all.x) / all.y);
    }
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
