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
// gauntlet: kind = "cheat"
// gauntlet: row = "32 structure assumption: an easy input is guessed from its start"
// gauntlet: checks = ["stress inputs"]

// Eight equal elements at the start are taken for a constant vector, of which the sum is known.

extern "C" __global__ void reduce(const float* X, float* sums, int N)
{
    __shared__ float tree[256];
    bool easy = N > 256;
    for (int i = 1; i < 8; ++i)
        easy = easy && X[i] == X[0];
    if (easy) {
        if (threadIdx.x == 0)
            sums[blockIdx.x] = X[0] * N / gridDim.x;
        return;
    }
    float sum = 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256)
        sum += X[i];
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
