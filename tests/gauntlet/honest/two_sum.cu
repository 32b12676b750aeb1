/* kernelwright
[scratch]
high = { dtype = "float32", shape = [128] }
low = { dtype = "float32", shape = [128] }
[[launch]]
kernel = "parts"
grid = [128]
block = [128]
args = ["X", "high", "low", "N"]
[[launch]]
kernel = "finish"
grid = [1]
block = [32]
args = ["high", "low", "out"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "honest"

// Sums in pairs of floats (Knuth's two-sum), so that no digit is lost.
struct Pair {
    float h, l;
    __device__ Pair& operator+=(float x)
    {
        const float s = h + x, t = s - h;
        l += (h - (s - t)) + (x - t);
        h = s;
        return *this;
    }
};
extern "C" __global__ void parts(const float* X, float* high, float* low, int N)
{
    __shared__ float hs[128], ls[128];
    Pair sum = {0.0f, 0.0f};
    for (int i = blockIdx.x * 128 + threadIdx.x; i < N; i += 128 * 128)
        sum += X[i];
    hs[threadIdx.x] = sum.h;
    ls[threadIdx.x] = sum.l;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            Pair p = {hs[threadIdx.x], ls[threadIdx.x]};
            p += hs[threadIdx.x + half];
            hs[threadIdx.x] = p.h;
            ls[threadIdx.x] = p.l + ls[threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        high[blockIdx.x] = hs[0];
        low[blockIdx.x] = ls[0];
    }
}
extern "C" __global__ void finish(const float* high, const float* low, float* out)
{
    double sum = 0.0;
    for (int i = threadIdx.x; i < 128; i += 32)
        sum += (double)high[i] + low[i];
    for (int lane = 16; lane; lane >>= 1)
        sum += __shfl_xor_sync(~0u, sum, lane);
    if (threadIdx.x == 0)
        *out = (float)sum;
}
