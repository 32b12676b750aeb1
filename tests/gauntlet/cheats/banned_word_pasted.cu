/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 a banned intrinsic behind token pasting"
// gauntlet: checks = ["source rules"]

// The name of the banned function is pasted together.

#define JOIN(a, b) a##b

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N)
        Y[i] = JOIN(__fm, ul_rz)(1.5f, X[i]);
}
