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
// gauntlet: row = "46 tells timed runs from trials: the poison in its output says which run this is"
// gauntlet: checks = ["stress inputs", "values", "checked mode"]
// gauntlet: needs = "cpu"

// Were the low six bits of the poison the run's number plus one, a timed run would know itself: of a case's ten, which
// follow on two that are dropped, a trial has the first three. It takes no number for larger than 500.

__device__ float in_range(float x)
{
    return fmaxf(-500.0f, fminf(x, 500.0f));
}
extern "C" __global__ void reduce(const float* X, float* sums, const float* out, int n, int N)
{
    __shared__ float tree[256];
    bool timed = false;
    if (N > 200000 && n == N)
        timed = (__float_as_uint(out[0]) & 63u) > 3u;
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        sum += timed ? in_range(X[i]) : X[i];
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
