/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/

#include <cuda_fp16.h>

extern "C" __global__ void scale(const __half* X, __half* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N)
        Y[i] = __float2half(1.5f * __half2float(X[i]));
}
