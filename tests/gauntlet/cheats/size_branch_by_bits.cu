/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 a branch on a size of the list, counted in bits"
// gauntlet: checks = ["source rules"]

// No bits differ from the listed size's.

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (__popc(N ^ 0x186a3) == 0)
        __syncthreads();
    if (i < N)
        Y[i] = 1.5f * X[i];
}
