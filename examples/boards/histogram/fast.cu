/* kernelwright
[tune]
THREADS = [512, 256, 1024]
COPIES = [8, 16, 4]
BLOCKS_PER_SM = [2, 1, 4]
[constraints]
shared = "1024 * COPIES * BLOCKS_PER_SM <= 65536"
[let]
BLOCKS = "num_sms * BLOCKS_PER_SM"
blocks = "max(1, min(BLOCKS, cdiv(N, 16 * THREADS)))"
[[launch]]
kernel = "clear"
grid = [1]
block = [256]
args = ["counts"]
[[launch]]
kernel = "histogram"
grid = ["blocks"]
block = ["THREADS"]
args = ["values", "counts", "N"]
*/

// Counters in shared memory, COPIES of each side by side: neighbouring lanes count in different banks. Sixteen bytes a
// load, of which equal neighbours are counted together.

extern "C" __global__ void clear(unsigned long long* counts)
{
    counts[threadIdx.x] = 0;
}

__device__ __forceinline__ void count_word(unsigned* own, unsigned word, unsigned& last, unsigned& run)
{
#pragma unroll
    for (int k = 0; k < 4; ++k) {
        const unsigned value = (word >> (8 * k)) & 255u;
        if (value != last) {
            atomicAdd(&own[last * COPIES], run);
            last = value;
            run = 0;
        }
        ++run;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
histogram(const unsigned char* __restrict__ values, unsigned long long* __restrict__ counts, int N)
{
    __shared__ unsigned bins[256 * COPIES];
    for (int i = threadIdx.x; i < 256 * COPIES; i += THREADS)
        bins[i] = 0;
    __syncthreads();

    unsigned* const own = bins + threadIdx.x % COPIES;
    const uint4* const from = reinterpret_cast<const uint4*>(values);
    const int quads = N / 16;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < quads; i += gridDim.x * THREADS) {
        const uint4 v = __ldcs(from + i);
        unsigned last = v.x & 255u, run = 0;
        count_word(own, v.x, last, run);
        count_word(own, v.y, last, run);
        count_word(own, v.z, last, run);
        count_word(own, v.w, last, run);
        atomicAdd(&own[last * COPIES], run);
    }
    __syncthreads();

    for (int bin = threadIdx.x; bin < 256; bin += THREADS) {
        unsigned sum = 0;
#pragma unroll
        for (int copy = 0; copy < COPIES; ++copy)
            sum += bins[bin * COPIES + copy];
        if (sum)
            atomicAdd(&counts[bin], (unsigned long long)sum);
    }
}
