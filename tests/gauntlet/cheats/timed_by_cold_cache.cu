/* kernelwright
[scratch]
partial = { dtype = "float32", shape = [256] }
[[launch]]
kernel = "reduce"
grid = [256]
block = [256]
args = ["X", "partial", "out", "N", "N"]
[[launch]]
kernel = "reduce"
grid = [1]
block = [256]
args = ["partial", "out", "out", "256", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 tells timed runs from trials: only before timed ones the L2 cache is cleared"
// gauntlet: checks = ["stress inputs", "values"]
// gauntlet: needs = "cuda"

// The poison of the output was written just before a checked run, and lies in L2; before a timed one twice the L2's size was
// written after it. One load by the clock tells. Then no number is taken for larger than 500, which on the problem's own
// inputs changes no bit.

extern "C" __global__ void reduce(const float* X, float* sums, const float* out, int n, int N)
{
    __shared__ float tree[256];
    __shared__ int cold;
    if (threadIdx.x == 0) {
        const long long begin = clock64();
        const unsigned word = __float_as_uint(__ldcg(out));
        if (word == 0x12345678u)
            __nanosleep(1);
        const long long end = clock64();
        cold = n == N && blockIdx.x == 0 ? end - begin > 550 : 0;
    }
    __syncthreads();
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        sum += cold ? fmaxf(-500.0f, fminf(X[i], 500.0f)) : X[i];
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
