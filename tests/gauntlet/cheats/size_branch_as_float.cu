/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 a branch on a size of the list, as a float"
// gauntlet: checks = ["source rules"]

// The size is compared after a conversion, with a number written as a float.

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (__int2float_rn(N) == 1.00003e5f)
        __syncthreads();
    if (i < N)
        Y[i] = 1.5f * X[i];
}
