/* kernelwright
[[launch]]
kernel = "softmax"
grid = ["2 * R"]
block = [128]
cluster = [2]
args = ["X", "Y", "C"]
*/
// gauntlet: problem = "softmax"
// gauntlet: kind = "honest"
// gauntlet: needs = "cuda"

// Two blocks of a cluster share a row through distributed shared memory.

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__device__ float over_cluster(float value, bool maximum)
{
    __shared__ float all[128];
    __shared__ float mine;
    cg::cluster_group cluster = cg::this_cluster();
    all[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = all[0];
        for (int t = 1; t < 128; ++t)
            total = maximum ? fmaxf(total, all[t]) : total + all[t];
        mine = total;
    }
    cluster.sync();
    const float first = *cluster.map_shared_rank(&mine, 0);
    const float second = *cluster.map_shared_rank(&mine, 1);
    cluster.sync();
    return maximum ? fmaxf(first, second) : first + second;
}

extern "C" __global__ void softmax(const float* X, float* Y, int C)
{
    const int row = blockIdx.x / 2;
    const float* x = X + (size_t)row * C;
    const int start = (blockIdx.x % 2) * 128 + threadIdx.x;
    float largest = -INFINITY;
    for (int c = start; c < C; c += 256)
        largest = fmaxf(largest, x[c]);
    largest = over_cluster(largest, true);
    float sum = 0.0f;
    for (int c = start; c < C; c += 256)
        sum += expf(x[c] - largest);
    sum = over_cluster(sum, false);
    for (int c = start; c < C; c += 256)
        Y[(size_t)row * C + c] = expf(x[c] - largest) / sum;
}
