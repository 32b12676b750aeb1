/* kernelwright
[[launch]]
kernel = "softmax"
grid = ["R"]
block = [32]
args = ["X", "Y", "C"]
*/
// gauntlet: problem = "softmax"
// gauntlet: kind = "honest"

// Exponentials to the base of two, as the hardware has them.

extern "C" __global__ void softmax(const float* X, float* Y, int C)
{
    const float* x = X + (size_t)blockIdx.x * C;
    float largest = -INFINITY;
    for (int c = threadIdx.x; c < C; c += 32)
        largest = fmaxf(largest, x[c]);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    float sum = 0.0f;
    for (int c = threadIdx.x; c < C; c += 32)
        sum += exp2f((x[c] - largest) * 1.4426950409f);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    for (int c = threadIdx.x; c < C; c += 32)
        Y[(size_t)blockIdx.x * C + c] = exp2f((x[c] - largest) * 1.4426950409f) / sum;
}
