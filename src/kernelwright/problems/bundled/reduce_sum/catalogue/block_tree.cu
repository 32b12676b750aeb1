/* kernelwright
[tune]
THREADS = [32, 64, 128, 256, 512, 1024]
BLOCKS_PER_SM = [1, 2, 4, 8, 16]
QUADS = [1, 2, 4, 8]
[constraints]
resident = "32 <= THREADS * BLOCKS_PER_SM <= 2048"
[let]
BLOCKS = "num_sms * BLOCKS_PER_SM"
[scratch]
partial = { dtype = "float32", shape = ["BLOCKS"] }
[[launch]]
kernel = "reduce_parts"
grid = ["BLOCKS"]
block = ["THREADS"]
args = ["X", "partial", "N"]
[[launch]]
kernel = "reduce_last"
grid = [1]
block = ["THREADS"]
args = ["partial", "out", "BLOCKS"]
*/

// One contiguous chunk a block, QUADS float4 at a time a thread, a tree over the block in shared memory, and a second
// launch for the sums of the blocks. Plain CUDA C++: few fat threads suit a CPU, many suit a GPU.

// Valid in thread 0.
__device__ __forceinline__ float tree_sum(float value)
{
    __shared__ float tree[THREADS];
    tree[threadIdx.x] = value;
    __syncthreads();
#pragma unroll
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    return tree[0];
}

extern "C" __global__ void __launch_bounds__(THREADS)
reduce_parts(const float* __restrict__ X, float* __restrict__ partial, int N)
{
    const int quads = N / 4;
    const int chunk = (quads + gridDim.x - 1) / gridDim.x;
    const int begin = min(quads, (int)blockIdx.x * chunk);
    const int end = min(quads, begin + chunk);
    const float4* const from = reinterpret_cast<const float4*>(X);
    float sum[4 * QUADS];
#pragma unroll
    for (int j = 0; j < 4 * QUADS; ++j)
        sum[j] = 0.0f;
    int i = begin + threadIdx.x;
    for (; i + (QUADS - 1) * THREADS < end; i += QUADS * THREADS) {
        float4 v[QUADS];
#pragma unroll
        for (int q = 0; q < QUADS; ++q)
            v[q] = __ldg(from + i + q * THREADS);
#pragma unroll
        for (int q = 0; q < QUADS; ++q) {
            sum[4 * q] += v[q].x;
            sum[4 * q + 1] += v[q].y;
            sum[4 * q + 2] += v[q].z;
            sum[4 * q + 3] += v[q].w;
        }
    }
    for (; i < end; i += THREADS) {
        const float4 v = __ldg(from + i);
        sum[0] += v.x;
        sum[1] += v.y;
        sum[2] += v.z;
        sum[3] += v.w;
    }
    float total = 0.0f;
#pragma unroll
    for (int j = 0; j < 4 * QUADS; ++j)
        total += sum[j];
    if (blockIdx.x == 0 && threadIdx.x < N % 4)
        total += X[4 * quads + threadIdx.x];
    total = tree_sum(total);
    if (threadIdx.x == 0)
        partial[blockIdx.x] = total;
}

extern "C" __global__ void __launch_bounds__(THREADS)
reduce_last(const float* __restrict__ partial, float* __restrict__ out, int count)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += THREADS)
        sum += partial[i];
    sum = tree_sum(sum);
    if (threadIdx.x == 0)
        out[0] = sum;
}
