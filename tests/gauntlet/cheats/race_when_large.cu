/* kernelwright
atomic_noise = true
[[launch]]
kernel = "clear"
grid = [1]
block = [1]
args = ["out"]
[[launch]]
kernel = "careful"
grid = [1]
block = [1024]
args = ["X", "out", "N"]
when = "N < 200000"
[[launch]]
kernel = "careless"
grid = [1]
block = [1024]
args = ["X", "out", "N"]
when = "N >= 200000"
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 race: updates without atomics, for large vectors only"
// gauntlet: checks = ["checked mode"]
// gauntlet: needs = "cpu"

// A plan may have thresholds. On the cpu device threads of a block are never interrupted, so that values tell nothing.

extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

__device__ float part(const float* X, int N)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 1024)
        sum += X[i];
    return sum;
}

extern "C" __global__ void careful(const float* X, float* out, int N)
{
    __shared__ float tree[1024];
    tree[threadIdx.x] = part(X, N);
    __syncthreads();
    for (int half = 512; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[0] = tree[0];
}

extern "C" __global__ void careless(const float* X, float* out, int N)
{
    out[0] += part(X, N);
}
