/* kernelwright
[[launch]]
kernel = "clear"
grid = [1]
block = [256]
args = ["counts"]
[[launch]]
kernel = "histogram"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["values", "counts", "N"]
*/

// One thread a byte, all of them on the same 256 counters.

extern "C" __global__ void clear(unsigned long long* counts)
{
    counts[threadIdx.x] = 0;
}

extern "C" __global__ void histogram(const unsigned char* values, unsigned long long* counts, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        atomicAdd(&counts[values[i]], 1ull);
}
