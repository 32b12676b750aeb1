/* kernelwright
[scratch]
partial = { dtype = "float32", shape = [256] }
[[launch]]
kernel = "reduce"
grid = [256]
block = [256]
args = ["X", "partial", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 race: relies on blocks running in order"
// gauntlet: checks = ["checked mode", "values", "repeat", "poison", "compute-sanitizer"]

// The last block sums what the others have written, without waiting for them.

extern "C" __global__ void reduce(const float* X, float* sums, float* out, int N)
{
    __shared__ float tree[256];
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
    if (blockIdx.x == 255 && threadIdx.x == 0) {
        float total = 0.0f;
        for (int b = 0; b < 256; ++b)
            total += sums[b];
        out[0] = total;
    }
}
