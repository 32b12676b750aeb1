/* kernelwright
[tune]
THREADS = [128, 256, 512, 1024]
BLOCKS_PER_SM = [1, 2, 4, 8, 16]
UNROLL = [1, 2, 4]
[constraints]
resident = "512 <= THREADS * BLOCKS_PER_SM <= 2048"
[[launch]]
kernel = "vector_add"
grid = ["min(num_sms * BLOCKS_PER_SM, cdiv(N, 4 * THREADS))"]
block = ["THREADS"]
args = ["A", "B", "C", "N"]
*/

// Persistent blocks walk over the vectors in float4 with a grid stride; the odd rest goes to the last block.

__device__ __forceinline__ float4 add(float4 a, float4 b)
{
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

extern "C" __global__ void __launch_bounds__(THREADS)
vector_add(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N)
{
    const float4* const a = reinterpret_cast<const float4*>(A);
    const float4* const b = reinterpret_cast<const float4*>(B);
    float4* const c = reinterpret_cast<float4*>(C);
    const int quads = N / 4;
    const int stride = gridDim.x * THREADS;
    int i = blockIdx.x * THREADS + threadIdx.x;
    for (; i < quads - (UNROLL - 1) * stride; i += UNROLL * stride) {
        float4 x[UNROLL], y[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            x[u] = __ldg(a + i + u * stride);
            y[u] = __ldg(b + i + u * stride);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            __stcs(c + i + u * stride, add(x[u], y[u]));
    }
    for (; i < quads; i += stride)
        __stcs(c + i, add(__ldg(a + i), __ldg(b + i)));
    const int tail = quads * 4 + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && tail < N)
        C[tail] = A[tail] + B[tail];
}
