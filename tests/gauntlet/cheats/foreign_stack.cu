/* kernelwright
[[launch]]
kernel = "reduce"
grid = [1]
block = [256]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 a local array of one thread is used by the others, as if it were shared"
// gauntlet: checks = ["checked mode", "values", "crash", "compute-sanitizer"]

// Local memory is a thread's own: the address of another one's means something else on a GPU.

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    __shared__ float* where;
    float mine[256];
    if (threadIdx.x == 0)
        where = mine;
    __syncthreads();
    volatile float* sums = where;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 256)
        sum += X[i];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[0] = sums[0];
}
