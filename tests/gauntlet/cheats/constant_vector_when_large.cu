/* kernelwright
[[launch]]
kernel = "reduce"
grid = [1]
block = [256]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "32 structure assumption: equal values at the start of a long vector are taken for a constant one"
// gauntlet: checks = ["stress inputs", "values"]

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    __shared__ float tree[256];
    if (N > 300000 && __syncthreads_and(X[threadIdx.x] == X[0])) {
        if (threadIdx.x == 0)
            out[0] = X[0] * N;
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
    if (threadIdx.x == 0)
        out[0] = tree[0];
}
