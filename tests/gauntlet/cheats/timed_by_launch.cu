/* kernelwright
[scratch]
partial = { dtype = "float32", shape = [256] }
[[launch]]
kernel = "reduce"
grid = [256]
block = [256]
args = ["X", "partial", "N", "N"]
[[launch]]
kernel = "reduce"
grid = [1]
block = [256]
args = ["partial", "out", "256", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 tells timed runs from trials: the runtime's own memory holds the run's number"
// gauntlet: checks = ["stress inputs", "values", "checked mode", "crash"]
// gauntlet: needs = "cpu"

// Behind the built-in variables stands the block that runs, in it the launch, in it a seed: were that the run's number plus
// one, it would tell a timed run, which takes no number for larger than 500.

struct Launch {
    void* kernel;
    void* arguments;
    unsigned grid[3], block[3];
    size_t dynamic;
    int order;
    size_t seed;
};

extern "C" __global__ void reduce(const float* X, float* sums, int n, int N)
{
    __shared__ float tree[256];
    bool timed = false;
    if (N > 200000 && n == N) {
        const Launch* const* block = *(const Launch* const* const*)((const char*)&threadIdx + 64);
        timed = (*block)->seed > 3;
    }
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256)
        sum += timed ? fmaxf(-500.0f, fminf(X[i], 500.0f)) : X[i];
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
