/* kernelwright
[tune]
THREADS = [256, 128, 512]
UNROLL = [1, 2, 4]
STREAM = [1, 0]
[let]
QUADS = "N * N / 4"
TILE = "THREADS * UNROLL"
[[launch]]
kernel = "grayscale"
grid = ["cdiv(QUADS, TILE)"]
block = ["THREADS"]
args = ["rgb", "grey", "QUADS"]
*/

// Four pixels are three float4 in and one out; N is even, so that nothing is left over.
// STREAM 1: loads and stores are marked as used once.

__device__ __forceinline__ float4 load(const float4* p)
{
#if STREAM
    return __ldcs(p);
#else
    return __ldg(p);
#endif
}

__device__ __forceinline__ float grey_of(float r, float g, float b)
{
    return 0.2989f * r + 0.5870f * g + 0.1140f * b;
}

extern "C" __global__ void __launch_bounds__(THREADS)
grayscale(const float* __restrict__ rgb, float* __restrict__ grey, int quads)
{
    const float4* const from = reinterpret_cast<const float4*>(rgb);
    float4* const to = reinterpret_cast<float4*>(grey);
    const int first = blockIdx.x * TILE + threadIdx.x;
    float4 v[UNROLL][3];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
        if (first + u * THREADS < quads)
#pragma unroll
            for (int k = 0; k < 3; ++k)
                v[u][k] = load(from + 3 * (size_t)(first + u * THREADS) + k);
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        if (first + u * THREADS >= quads)
            continue;
        const float4 a = v[u][0], b = v[u][1], c = v[u][2];
        const float4 result = make_float4(grey_of(a.x, a.y, a.z), grey_of(a.w, b.x, b.y),
                                          grey_of(b.z, b.w, c.x), grey_of(c.y, c.z, c.w));
#if STREAM
        __stcs(to + first + u * THREADS, result);
#else
        to[first + u * THREADS] = result;
#endif
    }
}
