/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 512)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/half_scale"
// gauntlet: kind = "honest"

#include <cuda_fp16.h>
// Two numbers a word; 1.5 x as x + x / 2 in fp32, rounded once.
extern "C" __global__ void scale(const __half* X, __half* Y, int N)
{
    const int i = 2 * (blockIdx.x * 256 + threadIdx.x);
    if (i + 1 < N) {
        const __half2 both = *reinterpret_cast<const __half2*>(X + i);
        const float2 f = __half22float2(both);
        *reinterpret_cast<__half2*>(Y + i) = __floats2half2_rn(f.x + 0.5f * f.x, f.y + 0.5f * f.y);
    } else if (i < N) {
        Y[i] = __float2half(1.5f * __half2float(X[i]));
    }
}
