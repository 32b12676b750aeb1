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

// Looks at its numbers with isnan, isinf and signbit, as CUDA has them without a namespace.

extern "C" __global__ void reduce(const float* X, float* sums, int N)
{
    __shared__ float tree[256];
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256) {
        const float x = X[i];
        sum += isnan(x) || isinf(x) || !isfinite(x) ? x : signbit(x) ? -fabsf(x) : x;
    }
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        sums[blockIdx.x] = tree[0];
}
