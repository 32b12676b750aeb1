/* kernelwright
[[launch]]
kernel = "softmax"
grid = ["R"]
block = [32]
args = ["X", "Y", "C"]
*/
// gauntlet: problem = "softmax"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 hard-coded shapes, wrong elsewhere"
// gauntlet: checks = ["sizes off the list", "values"]

// Ignores what stands beyond column 4096, the longest row of the short list.

extern "C" __global__ void softmax(const float* X, float* Y, int C)
{
    const float* x = X + (size_t)blockIdx.x * C;
    float* y = Y + (size_t)blockIdx.x * C;
    const int width = min(C, 4096);
    float largest = -INFINITY;
    for (int c = threadIdx.x; c < width; c += 32)
        largest = fmaxf(largest, x[c]);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    float sum = 0.0f;
    for (int c = threadIdx.x; c < width; c += 32)
        sum += expf(x[c] - largest);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    for (int c = threadIdx.x; c < C; c += 32)
        y[c] = c < width ? expf(x[c] - largest) / sum : 0.0f;
}
