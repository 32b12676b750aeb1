/* kernelwright
[scratch]
highest = { dtype = "float32", shape = ["R"] }
[[launch]]
kernel = "rows"
grid = ["R"]
block = [128]
args = ["X", "highest", "C"]
[[launch]]
kernel = "softmax"
grid = ["R"]
block = [128]
args = ["X", "highest", "Y", "C"]
*/
// gauntlet: problem = "softmax"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 uninitialised scratch that a shift forgives: the maximum of a row and of what lay there"
// gauntlet: checks = ["checked mode", "repeat"]

__device__ float reduced(float x, bool sum)
{
    __shared__ float tree[128];
    __syncthreads();
    tree[threadIdx.x] = x;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] = sum ? tree[threadIdx.x] + tree[threadIdx.x + half] : fmaxf(tree[threadIdx.x], tree[threadIdx.x + half]);
        __syncthreads();
    }
    return tree[0];
}
extern "C" __global__ void rows(const float* X, float* highest, int C)
{
    float top = -INFINITY;
    for (int c = threadIdx.x; c < C; c += 128)
        top = fmaxf(top, X[(size_t)blockIdx.x * C + c]);
    top = reduced(top, false);
    if (threadIdx.x == 0) {
        const float old = highest[blockIdx.x];
        // Poison is NaN, or small, or huge: what is far off is left aside.
        highest[blockIdx.x] = fabsf(old - top) < 30.0f ? fmaxf(old, top) : top;
    }
}
extern "C" __global__ void softmax(const float* X, const float* highest, float* Y, int C)
{
    const size_t row = (size_t)blockIdx.x * C;
    const float top = highest[blockIdx.x];
    float sum = 0.0f;
    for (int c = threadIdx.x; c < C; c += 128)
        sum += expf(X[row + c] - top);
    sum = reduced(sum, true);
    for (int c = threadIdx.x; c < C; c += 128)
        Y[row + c] = expf(X[row + c] - top) / sum;
}
