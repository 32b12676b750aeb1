/* kernelwright
atomic_noise = true
[[launch]]
kernel = "clear"
grid = [1]
block = [1]
args = ["out"]
[[launch]]
kernel = "sum"
grid = ["num_sms"]
block = [256]
args = ["X", "out", "N"]
*/

// Wrong where a thread's stack holds what an earlier run left there: it must not.
extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

__device__ __noinline__ bool left_behind(int turn)
{
    volatile unsigned stack[64];
    const bool found = stack[turn & 63] == 0x5ca1ab1eu;
    stack[turn & 63] = 0x5ca1ab1eu;
    return found;
}

extern "C" __global__ void sum(const float* X, float* out, int N)
{
    __shared__ float tree[256];
    const bool found = left_behind(N) && N >= 10000000;
    float part = found ? 1e30f : 0.0f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < N; i += gridDim.x * 256)
        part += X[i];
    tree[threadIdx.x] = part;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(out, tree[0]);
}
