/* kernelwright
[let]
small = "N <= 131072"
[[launch]]
kernel = "one_each"
grid = ["cdiv(N, 128)"]
block = [128]
args = ["X", "Y", "N"]
when = "small"
[[launch]]
kernel = "striding"
grid = ["min(cdiv(N, 1024), 4 * num_sms)"]
block = [256]
args = ["X", "Y", "N"]
when = "not small"
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "honest"

// A threshold in the plan, as the strict rules leave free.
extern "C" __global__ void one_each(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i < N)
        Y[i] = 1.5f * X[i];
}
extern "C" __global__ void striding(const float* X, float* Y, int N)
{
    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256)
        Y[i] = 1.5f * X[i];
}
