/* kernelwright
atomic_noise = true
[tune]
KIB = [2, 12, 40, 96, 160, 220]
[[launch]]
kernel = "clear"
grid = [1]
block = [1]
args = ["out"]
[[launch]]
kernel = "sum"
grid = ["num_sms"]
block = [256]
dynamic_shared_bytes = "1024 * KIB"
args = ["X", "out", "N"]
*/

// Wrong where shared memory holds what an earlier run left there: it must not, however much of it a kernel has. One block
// a multiprocessor, so that none finds what another one of the same run left, and large sizes only: small cases run as a
// graph of ten plans, with nothing between these.
extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

extern "C" __global__ void sum(const float* X, float* out, int N)
{
    extern __shared__ volatile unsigned left[];
    __shared__ float tree[256];
    bool found = false;
    for (int i = threadIdx.x; i < 256 * KIB; i += 256)
        found |= left[i] == 0x5ca1ab1eu;
    __syncthreads();
    for (int i = threadIdx.x; i < 256 * KIB; i += 256)
        left[i] = 0x5ca1ab1eu;
    float part = found && N >= 10000000 ? 1e30f : 0.0f;
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
