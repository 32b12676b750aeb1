/* kernelwright
[scratch]
partial = { dtype = "float32", shape = ["num_sms"] }
[[launch]]
kernel = "reduce"
grid = ["num_sms"]
block = [256]
cooperative = true
args = ["X", "partial", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "honest"
// gauntlet: needs = "cuda"

// One cooperative launch with a barrier of the whole grid.

#include <cooperative_groups.h>

extern "C" __global__ void reduce(const float* X, float* sums, float* out, int N)
{
    __shared__ float tree[256];
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256)
        sum += X[i];
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = tree[0];
    cooperative_groups::this_grid().sync();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        float total = 0.0f;
        for (int b = 0; b < gridDim.x; ++b)
            total += sums[b];
        out[0] = total;
    }
}
