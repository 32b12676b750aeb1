/* kernelwright
[[launch]]
kernel = "softmax"
grid = ["R"]
block = [128]
args = ["X", "Y", "C"]
*/
// gauntlet: problem = "softmax"
// gauntlet: kind = "honest"

// The maximum by integer atomics in shared memory: in any order the same.

__device__ __forceinline__ int ordered(float x)
{
    const int bits = __float_as_int(x);
    return bits >= 0 ? bits : bits ^ 0x7fffffff;
}

extern "C" __global__ void softmax(const float* X, float* Y, int C)
{
    __shared__ int highest;
    __shared__ float tree[128];
    const float* x = X + (size_t)blockIdx.x * C;
    if (threadIdx.x == 0)
        highest = -0x7fffffff;
    __syncthreads();
    for (int c = threadIdx.x; c < C; c += 128)
        atomicMax(&highest, ordered(x[c]));
    __syncthreads();
    const float largest = __int_as_float(highest >= 0 ? highest : highest ^ 0x7fffffff);
    float sum = 0.0f;
    for (int c = threadIdx.x; c < C; c += 128)
        sum += expf(x[c] - largest);
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    for (int c = threadIdx.x; c < C; c += 128)
        Y[(size_t)blockIdx.x * C + c] = expf(x[c] - largest) / tree[0];
}
