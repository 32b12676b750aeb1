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

// Wrong where shared memory holds what an earlier run left there: it must not. One block a multiprocessor, so that none
// finds what another one of the same run left; small cases run ten at a time, with nothing between them.
extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

extern "C" __global__ void sum(const float* X, float* out, int N)
{
    __shared__ volatile unsigned left[4096];
    __shared__ float tree[256];
    const int here = 2048 + 7 * (threadIdx.x & 255);
    const bool found = N >= 4000000 && left[here] == 0x5ca1ab1eu;
    __syncthreads();
    left[here] = 0x5ca1ab1eu;
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
