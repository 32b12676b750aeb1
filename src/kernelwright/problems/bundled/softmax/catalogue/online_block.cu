/* kernelwright
[tune]
THREADS = [4, 16, 32, 64, 128, 256, 512, 1024]
UNROLL = [1, 4, 8]
[[launch]]
kernel = "softmax"
grid = ["R"]
block = ["THREADS"]
args = ["X", "Y", "R", "C"]
*/

// One block a row, two passes: maximum and sum are kept together (online softmax, Milakov and Gimelshein 2018), the
// second pass rereads the row from the L2 cache. Scalar accesses, any size, few or many threads.

#define NONE (-1e38f)

extern "C" __global__ void __launch_bounds__(THREADS)
softmax(const float* __restrict__ X, float* __restrict__ Y, int R, int C)
{
    __shared__ float maxima[THREADS];
    __shared__ float sums[THREADS];
    const float* const x = X + (size_t)blockIdx.x * C;
    float* const y = Y + (size_t)blockIdx.x * C;
    const int tid = threadIdx.x;

    float largest = NONE;
    float sum = 0.0f;
    for (int i = tid; i < C; i += UNROLL * THREADS) {
        float v[UNROLL];
        float top = largest;
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            v[u] = i + u * THREADS < C ? __ldg(x + i + u * THREADS) : NONE;
            top = fmaxf(top, v[u]);
        }
        sum *= __expf(largest - top);
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            sum += __expf(v[u] - top);
        largest = top;
    }
    maxima[tid] = largest;
    sums[tid] = sum;
    __syncthreads();
#pragma unroll
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (tid < half) {
            const float a = maxima[tid];
            const float b = maxima[tid + half];
            const float top = fmaxf(a, b);
            sums[tid] = sums[tid] * __expf(a - top) + sums[tid + half] * __expf(b - top);
            maxima[tid] = top;
        }
        __syncthreads();
    }
    largest = maxima[0];
    const float scale = 1.0f / sums[0];
#pragma unroll 4
    for (int i = tid; i < C; i += THREADS)
        y[i] = __expf(__ldg(x + i) - largest) * scale;
}
