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

// Tiles of cooperative groups.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void reduce(const float* X, float* sums, int N)
{
    __shared__ float warps[8];
    const auto block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256)
        sum += X[i];
    sum = cg::reduce(warp, sum, cg::plus<float>());
    if (warp.thread_rank() == 0)
        warps[threadIdx.x / 32] = sum;
    block.sync();
    if (block.thread_rank() == 0) {
        float total = 0.0f;
        for (int w = 0; w < 8; ++w)
            total += warps[w];
        sums[blockIdx.x] = total;
    }
}
