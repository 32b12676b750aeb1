/* kernelwright
[scratch]
partial = { dtype = "float32", shape = [256] }
arrived = { dtype = "uint32", shape = [1] }
[[launch]]
kernel = "clear"
grid = [1]
block = [1]
args = ["arrived"]
[[launch]]
kernel = "reduce"
grid = [256]
block = [256]
args = ["X", "partial", "arrived", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "honest"

// The last block to come, by an integer atomic behind a fence, adds up what all have written.

extern "C" __global__ void clear(unsigned* arrived)
{
    *arrived = 0;
}

extern "C" __global__ void reduce(const float* X, float* partial, unsigned* arrived, float* out, int N)
{
    __shared__ float tree[256];
    __shared__ bool last;
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
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = tree[0];
        __threadfence();
        last = atomicAdd(arrived, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    __threadfence();
    sum = ((volatile float*)partial)[threadIdx.x];
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
