/* kernelwright
[tune]
THREADS = [256, 512, 1024]
BLOCKS_PER_SM = [1, 2, 4, 8, 16]
UNROLL = [2, 4, 8, 16]
CHUNKS = [0, 1]
LOAD = [0, 1, 2]
LAST = [256, 1024]
SINGLE_LIMIT = [0, 131072]
[constraints]
registers = "THREADS * UNROLL <= 8192"
resident = "1024 <= THREADS * BLOCKS_PER_SM <= 8192"
in_flight = "THREADS * BLOCKS_PER_SM * UNROLL >= 4096"
[let]
BLOCKS = "num_sms * BLOCKS_PER_SM"
blocks = "1 if N <= SINGLE_LIMIT else min(BLOCKS, cdiv(N, 4 * THREADS))"
[scratch]
partial = { dtype = "float32", shape = ["BLOCKS"] }
[[launch]]
kernel = "reduce_parts"
when = "blocks > 1"
grid = ["blocks"]
block = ["THREADS"]
args = ["X", "partial", "N"]
[[launch]]
kernel = "reduce_last"
when = "blocks > 1"
grid = [1]
block = ["LAST"]
args = ["partial", "out", "blocks"]
[[launch]]
kernel = "reduce_parts"
when = "blocks == 1"
grid = [1]
block = ["THREADS"]
args = ["X", "out", "N"]
*/

// UNROLL float4 in flight a thread, shuffles within warps, a second launch for the sums of the blocks; short vectors
// take one block and one launch.
// CHUNKS 0: tiles are dealt round-robin to the blocks; 1: one contiguous chunk a block.
// LOAD 0: read-only path; 1: no allocation in L1 and 256 bytes of prefetch into L2; 2: streaming.

__device__ __forceinline__ float4 load(const float4* p)
{
#if LOAD == 1 && !defined(KERNELWRIGHT_CPU)
    float4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(p));
    return v;
#elif LOAD == 2
    return __ldcs(p);
#else
    return __ldg(p);
#endif
}

__device__ __forceinline__ void add(float4& s, float4 v)
{
    s.x += v.x;
    s.y += v.y;
    s.z += v.z;
    s.w += v.w;
}

// Valid in thread 0.
template <int NT>
__device__ __forceinline__ float block_sum(float value)
{
    __shared__ float warp_sums[32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        value += __shfl_down_sync(0xffffffffu, value, offset);
    if (lane == 0)
        warp_sums[warp] = value;
    __syncthreads();
    if (warp == 0) {
        value = lane < NT / 32 ? warp_sums[lane] : 0.0f;
#pragma unroll
        for (int offset = 16; offset > 0; offset /= 2)
            value += __shfl_down_sync(0xffffffffu, value, offset);
    }
    return value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
reduce_parts(const float* __restrict__ X, float* __restrict__ sums, int N)
{
    const long long quads = N / 4;
    const long long tile = THREADS * UNROLL;
    const float4* const from = reinterpret_cast<const float4*>(X);
    float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);

#if CHUNKS
    // A multiple of 32, so that every warp starts at a boundary of 512 bytes.
    const long long chunk = ((quads + gridDim.x - 1) / gridDim.x + 31) / 32 * 32;
    const long long begin = min(quads, blockIdx.x * chunk);
    const long long end = min(quads, begin + chunk);
    long long i = begin + threadIdx.x;
    for (; i + (UNROLL - 1) * THREADS < end; i += tile) {
        float4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            v[u] = load(from + i + u * THREADS);
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            add(s, v[u]);
    }
    for (; i < end; i += THREADS)
        add(s, load(from + i));
#else
    const long long full = quads / tile;
    for (long long t = blockIdx.x; t < full; t += gridDim.x) {
        const float4* const p = from + t * tile + threadIdx.x;
        float4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            v[u] = load(p + u * THREADS);
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            add(s, v[u]);
    }
    // Less than one tile is left: the last blocks have had the least to do.
    long long i = full * tile + (long long)(gridDim.x - 1 - blockIdx.x) * THREADS + threadIdx.x;
    for (; i < quads; i += (long long)gridDim.x * THREADS)
        add(s, load(from + i));
#endif

    float sum = (s.x + s.y) + (s.z + s.w);
    if (blockIdx.x == gridDim.x - 1 && threadIdx.x < N % 4)
        sum += X[4 * quads + threadIdx.x];
    sum = block_sum<THREADS>(sum);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(LAST)
reduce_last(const float* __restrict__ partial, float* __restrict__ out, int count)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += LAST)
        sum += partial[i];
    sum = block_sum<LAST>(sum);
    if (threadIdx.x == 0)
        out[0] = sum;
}
