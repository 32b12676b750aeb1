/* kernelwright
[[launch]]
kernel = "softmax"
grid = ["R"]
block = [32]
args = ["X", "Y", "C"]
*/
// gauntlet: problem = "softmax"
// gauntlet: kind = "honest"

// Maximum and sum in one pass, rescaled on the way.

extern "C" __global__ void softmax(const float* X, float* Y, int C)
{
    const float* x = X + (size_t)blockIdx.x * C;
    float* y = Y + (size_t)blockIdx.x * C;
    float largest = -3.4e38f;
    float sum = 0.0f;
    for (int c = threadIdx.x; c < C; c += 32) {
        const float before = largest;
        largest = fmaxf(largest, x[c]);
        sum = sum * expf(before - largest) + expf(x[c] - largest);
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        const float other = __shfl_xor_sync(0xffffffffu, largest, lanes);
        const float other_sum = __shfl_xor_sync(0xffffffffu, sum, lanes);
        const float both = fmaxf(largest, other);
        sum = sum * expf(largest - both) + other_sum * expf(other - both);
        largest = both;
    }
    const float scale = 1.0f / sum;
    for (int c = threadIdx.x; c < C; c += 32)
        y[c] = expf(x[c] - largest) * scale;
}
