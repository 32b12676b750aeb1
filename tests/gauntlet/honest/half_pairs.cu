/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 512)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/half_scale"
// gauntlet: kind = "honest"

// Two halves at a time, the last one alone.

#include <cuda_fp16.h>

extern "C" __global__ void scale(const __half* X, __half* Y, int N)
{
    const int i = (blockIdx.x * blockDim.x + threadIdx.x) * 2;
    if (i + 1 < N) {
        const float2 pair = __half22float2(*(const __half2*)(X + i));
        *(__half2*)(Y + i) = __floats2half2_rn(1.5f * pair.x, 1.5f * pair.y);
    } else if (i < N)
        Y[i] = __float2half(1.5f * __half2float(X[i]));
}
