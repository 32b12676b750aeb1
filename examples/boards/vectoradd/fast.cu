/* kernelwright
[tune]
THREADS = [256, 128, 512, 1024]
UNROLL = [2, 1, 4]
STREAM = [1, 0]
[let]
COUNT = "N * N"
TILE = "THREADS * UNROLL * 8"
[[launch]]
kernel = "vector_add"
grid = ["cdiv(COUNT, TILE)"]
block = ["THREADS"]
args = ["A", "B", "C", "COUNT"]
*/
#include <cuda_fp16.h>

// One tile of 16-byte loads a block, all of them in flight before the first store.
// STREAM 1: loads and stores are marked as used once.

__device__ __forceinline__ uint4 load(const uint4* p)
{
#if STREAM
    return __ldcs(p);
#else
    return __ldg(p);
#endif
}

__device__ __forceinline__ void store(uint4* p, uint4 v)
{
#if STREAM
    __stcs(p, v);
#else
    *p = v;
#endif
}

__device__ __forceinline__ unsigned add_pair(unsigned a, unsigned b)
{
    const __half2 sum = __hadd2(*reinterpret_cast<__half2*>(&a), *reinterpret_cast<__half2*>(&b));
    return *reinterpret_cast<const unsigned*>(&sum);
}

extern "C" __global__ void __launch_bounds__(THREADS)
vector_add(const __half* __restrict__ A, const __half* __restrict__ B, __half* __restrict__ C, int count)
{
    const size_t start = (size_t)blockIdx.x * TILE;
    if (start + TILE <= (size_t)count) {
        const uint4* const a = reinterpret_cast<const uint4*>(A + start) + threadIdx.x;
        const uint4* const b = reinterpret_cast<const uint4*>(B + start) + threadIdx.x;
        uint4* const c = reinterpret_cast<uint4*>(C + start) + threadIdx.x;
        uint4 x[UNROLL], y[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            x[u] = load(a + u * THREADS);
            y[u] = load(b + u * THREADS);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            store(c + u * THREADS, make_uint4(add_pair(x[u].x, y[u].x), add_pair(x[u].y, y[u].y),
                                              add_pair(x[u].z, y[u].z), add_pair(x[u].w, y[u].w)));
    } else {
        for (size_t i = start + threadIdx.x; i < (size_t)count; i += THREADS)
            C[i] = __hadd(A[i], B[i]);
    }
}
