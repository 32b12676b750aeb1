/* kernelwright
atomic_noise = true
[[launch]]
kernel = "clear"
grid = [1]
block = [1]
args = ["out"]
[[launch]]
kernel = "reduce"
grid = ["2 * num_sms"]
block = [256]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "honest"

// Float atomics, declared: equal runs differ by rounding.

extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256)
        sum += X[i];
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, lanes);
    if (threadIdx.x % 32 == 0)
        atomicAdd(out, sum);
}
