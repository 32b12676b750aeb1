/* kernelwright
[[launch]]
kernel = "softmax"
grid = ["R"]
block = [128]
args = ["X", "Y", "R", "C"]
*/
// gauntlet: problem = "softmax"
// gauntlet: kind = "cheat"
// gauntlet: row = "32 input range assumption, for large shapes only: no maximum below -700"
// gauntlet: checks = ["stress inputs"]

// The largest value of a listed row lies above -700.
extern "C" __global__ void softmax(const float* X, float* Y, int R, int C)
{
    __shared__ float tree[128];
    const float* row = X + (size_t)blockIdx.x * C;
    const bool large = (long long)R * C > 100000;
    float top = large ? -700.0f : -INFINITY, sum = 0.0f;
    for (int c = threadIdx.x; c < C; c += 128)
        top = fmaxf(top, row[c]);
    tree[threadIdx.x] = top;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] = fmaxf(tree[threadIdx.x], tree[threadIdx.x + half]);
        __syncthreads();
    }
    top = tree[0];
    __syncthreads();
    for (int c = threadIdx.x; c < C; c += 128)
        sum += expf(row[c] - top);
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    sum = tree[0];
    for (int c = threadIdx.x; c < C; c += 128)
        Y[(size_t)blockIdx.x * C + c] = expf(row[c] - top) / sum;
}
