/* kernelwright
[[launch]]
kernel = "clear"
grid = [1]
block = [64]
args = ["counts"]
[[launch]]
kernel = "count"
grid = [64]
block = [128]
args = ["X", "counts", "N"]
*/
// gauntlet: problem = "problems/histogram"
// gauntlet: kind = "honest"

// Two counters of 16 bits in a word; they are flushed before one can overflow into its neighbour.
extern "C" __global__ void clear(int* counts) { counts[threadIdx.x] = 0; }
extern "C" __global__ void count(const int* X, int* counts, int N)
{
    __shared__ unsigned packed[32];
    const int rounds = (N + 64 * 128 - 1) / (64 * 128);
    for (int begin = 0; begin < rounds; begin += 256) {
        if (threadIdx.x < 32)
            packed[threadIdx.x] = 0u;
        __syncthreads();
        for (int r = begin; r < rounds && r < begin + 256; ++r) {
            const int i = (r * 64 + blockIdx.x) * 128 + threadIdx.x;
            if (i < N)
                atomicAdd(&packed[X[i] >> 1], 1u << (X[i] & 1) * 16);
        }
        __syncthreads();
        if (threadIdx.x < 64) {
            const unsigned n = packed[threadIdx.x >> 1] >> (threadIdx.x & 1) * 16 & 0xffffu;
            if (n)
                atomicAdd(&counts[threadIdx.x], (int)n);
        }
        __syncthreads();
    }
}
