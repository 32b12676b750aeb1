/* kernelwright
[[launch]]
kernel = "clear"
grid = [1]
block = [64]
args = ["counts"]
[[launch]]
kernel = "count"
grid = ["cdiv(N, 1024)"]
block = [256]
args = ["X", "counts", "N"]
*/
// gauntlet: problem = "problems/histogram"
// gauntlet: kind = "honest"

// Integer atomics: in any order the same counts.

extern "C" __global__ void clear(int* counts)
{
    counts[threadIdx.x] = 0;
}

extern "C" __global__ void count(const int* X, int* counts, int N)
{
    __shared__ int mine[64];
    if (threadIdx.x < 64)
        mine[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256)
        atomicAdd(&mine[X[i]], 1);
    __syncthreads();
    if (threadIdx.x < 64)
        atomicAdd(&counts[threadIdx.x], mine[threadIdx.x]);
}
