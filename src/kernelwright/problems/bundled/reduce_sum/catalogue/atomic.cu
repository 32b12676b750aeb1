/* kernelwright
atomic_noise = true
[tune]
THREADS = [128, 256, 512, 1024]
BLOCKS_PER_SM = [1, 2, 4, 8]
[constraints]
resident = "512 <= THREADS * BLOCKS_PER_SM <= 2048"
[[launch]]
kernel = "clear"
grid = [1]
block = [1]
args = ["out"]
[[launch]]
kernel = "reduce"
grid = ["min(num_sms * BLOCKS_PER_SM, cdiv(N, 4 * THREADS))"]
block = ["THREADS"]
args = ["X", "out", "N"]
*/

// Every block adds its sum to the result with one atomic. The order of these additions differs from run to run.

extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

extern "C" __global__ void __launch_bounds__(THREADS)
reduce(const float* __restrict__ X, float* __restrict__ out, int N)
{
    __shared__ float warp_sums[THREADS / 32];
    const float4* const quads = reinterpret_cast<const float4*>(X);
    const int stride = gridDim.x * THREADS;
    const int first = blockIdx.x * THREADS + threadIdx.x;
    float4 s = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int i = first; i < N / 4; i += stride) {
        const float4 v = __ldg(quads + i);
        s.x += v.x;
        s.y += v.y;
        s.z += v.z;
        s.w += v.w;
    }
    float sum = (s.x + s.y) + (s.z + s.w);
    if (first < N % 4)
        sum += X[N - 1 - first];
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, offset);
    if (threadIdx.x % 32 == 0)
        warp_sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
#pragma unroll
        for (int w = 0; w < THREADS / 32; ++w)
            total += warp_sums[w];
        atomicAdd(out, total);
    }
}
