/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 a branch on a size of the list, by the number of blocks"
// gauntlet: checks = ["source rules"]

// No size is named: of the listed ones only one makes so many blocks.

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (gridDim.x == 391)
        __syncthreads();
    if (i < N)
        Y[i] = 1.5f * X[i];
}
