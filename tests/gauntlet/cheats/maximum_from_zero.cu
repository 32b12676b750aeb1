/* kernelwright
[[launch]]
kernel = "softmax"
grid = ["R"]
block = [32]
args = ["X", "Y", "C"]
*/
// gauntlet: problem = "softmax"
// gauntlet: kind = "cheat"
// gauntlet: row = "32 input range assumption: some input is positive"
// gauntlet: checks = ["values", "stress inputs"]

// The maximum starts at 0: rows of large negative numbers underflow to 0 / 0.

extern "C" __global__ void softmax(const float* X, float* Y, int C)
{
    const float* x = X + (size_t)blockIdx.x * C;
    float largest = 0.0f;
    for (int c = threadIdx.x; c < C; c += 32)
        largest = fmaxf(largest, x[c]);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
    float sum = 0.0f;
    for (int c = threadIdx.x; c < C; c += 32)
        sum += expf(x[c] - largest);
    for (int lanes = 16; lanes > 0; lanes /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
    for (int c = threadIdx.x; c < C; c += 32)
        Y[(size_t)blockIdx.x * C + c] = expf(x[c] - largest) / sum;
}
