/* kernelwright
[[launch]]
kernel = "reduce"
grid = [1]
block = [256]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "18 value fingerprint cache"
// gauntlet: checks = ["binary rules"]

// Remembers the sum of a vector by three of its elements and answers from memory the next time.

__device__ float key[3];
__device__ float answer;

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    __shared__ float tree[256];
    const bool known = key[0] == X[0] && key[1] == X[N / 2] && key[2] == X[N - 1];
    if (known) {
        if (threadIdx.x == 0)
            out[0] = answer;
        return;
    }
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 256)
        sum += X[i];
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        out[0] = answer = tree[0];
        key[0] = X[0], key[1] = X[N / 2], key[2] = X[N - 1];
    }
}
