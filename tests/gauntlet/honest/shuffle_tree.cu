/* kernelwright
[scratch]
partial = { dtype = "float32", shape = [256] }
[[launch]]
kernel = "reduce"
grid = [256]
block = [256]
args = ["X", "partial", "N"]
[[launch]]
kernel = "reduce"
grid = [1]
block = [256]
args = ["partial", "out", "256"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "honest"

// Shuffles inside of warps, shared memory between them.

extern "C" __global__ void reduce(const float* X, float* sums, int N)
{
    __shared__ float warps[8];
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256)
        sum += X[i];
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, lanes);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int w = 0; w < 8; ++w)
            total += warps[w];
        sums[blockIdx.x] = total;
    }
}
