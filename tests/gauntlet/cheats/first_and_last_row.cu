/* kernelwright
[[launch]]
kernel = "softmax"
grid = ["R"]
block = [32]
args = ["X", "Y", "C"]
*/
// gauntlet: problem = "softmax"
// gauntlet: kind = "cheat"
// gauntlet: row = "35 partial output: only the rows that are looked at"
// gauntlet: checks = ["values", "poison"]

// Right in the first and the last row, one over C between.

extern "C" __global__ void softmax(const float* X, float* Y, int C)
{
    const float* x = X + (size_t)blockIdx.x * C;
    float* y = Y + (size_t)blockIdx.x * C;
    if (blockIdx.x > 0 && blockIdx.x + 1 < gridDim.x) {
        for (int c = threadIdx.x; c < C; c += 32)
            y[c] = 1.0f / C;
        return;
    }
    float largest = -INFINITY;
    for (int c = 0; c < C; ++c)
        largest = fmaxf(largest, x[c]);
    float sum = 0.0f;
    for (int c = 0; c < C; ++c)
        sum += expf(x[c] - largest);
    for (int c = threadIdx.x; c < C; c += 32)
        y[c] = expf(x[c] - largest) / sum;
}
