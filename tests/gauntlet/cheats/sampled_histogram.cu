/* kernelwright
[[launch]]
kernel = "clear"
grid = [1]
block = [64]
args = ["counts"]
[[launch]]
kernel = "count"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "counts", "N"]
*/
// gauntlet: problem = "problems/histogram"
// gauntlet: kind = "cheat"
// gauntlet: row = "30 the mean instead of the work"
// gauntlet: checks = ["values"]

// Counts every second number and doubles the counts.

extern "C" __global__ void clear(int* counts)
{
    counts[threadIdx.x] = 0;
}

extern "C" __global__ void count(const int* X, int* counts, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N && i % 2 == 0)
        atomicAdd(&counts[X[i]], 2);
}
