/* kernelwright
[tune]
THREADS = [64, 128, 256, 512, 1024]
UNROLL = [1, 2, 4, 8]
STREAM = [0, 1, 2]
[constraints]
in_flight = "THREADS * UNROLL <= 4096"
[let]
TILE = "THREADS * UNROLL * 4"
[[launch]]
kernel = "vector_add"
grid = ["cdiv(N, TILE)"]
block = ["THREADS"]
args = ["A", "B", "C", "N"]
*/

// One tile of float4 a block: every thread has 2 * UNROLL loads of 16 bytes in flight before its first store.
// STREAM 0: plain accesses; 1: streaming (evict first) loads and stores; 2: streaming stores only.

__device__ __forceinline__ float4 load(const float4* p)
{
#if STREAM == 1
    return __ldcs(p);
#else
    return __ldg(p);
#endif
}

__device__ __forceinline__ void store(float4* p, float4 v)
{
#if STREAM == 0
    *p = v;
#else
    __stcs(p, v);
#endif
}

__device__ __forceinline__ float4 add(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

extern "C" __global__ void __launch_bounds__(THREADS)
vector_add(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N)
{
    const size_t start = (size_t)blockIdx.x * TILE;
    if (start + TILE <= (size_t)N) {
        const float4* const a = reinterpret_cast<const float4*>(A + start) + threadIdx.x;
        const float4* const b = reinterpret_cast<const float4*>(B + start) + threadIdx.x;
        float4* const c = reinterpret_cast<float4*>(C + start) + threadIdx.x;
        float4 x[UNROLL], y[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            x[u] = load(a + u * THREADS);
            y[u] = load(b + u * THREADS);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            store(c + u * THREADS, add(x[u], y[u]));
    } else {
        for (size_t i = start + threadIdx.x; i < (size_t)N; i += THREADS)
            C[i] = A[i] + B[i];
    }
}
