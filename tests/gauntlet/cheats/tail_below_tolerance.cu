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
// gauntlet: row = "35 skipped tail, below the tolerance of a long sum"
// gauntlet: checks = ["stress inputs"]

// The last element of a long vector is left out: a millionth of the sum.
extern "C" __global__ void reduce(const float* X, float* sums, int N)
{
    __shared__ float tree[256];
    float sum = 0.0f;
    const int end = N > 1004000 ? N - 1 : N;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < end; i += gridDim.x * 256)
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
