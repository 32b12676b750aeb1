/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "24 a header that the problem does not allow"
// gauntlet: checks = ["source rules"]

// Includes a header beyond the allowed ones.

#include <cooperative_groups.h>

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N)
        Y[i] = 1.5f * X[i];
}
