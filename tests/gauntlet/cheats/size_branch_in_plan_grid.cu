/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)", "1 + min(1, N // 100003) * min(1, 100003 // N)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 a branch on a size of the list, in the number of blocks"
// gauntlet: checks = ["source rules"]

// The plan gives one size a second row of blocks.

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (gridDim.y == 2 && blockIdx.y == 1)
        return;
    if (i < N)
        Y[i] = 1.5f * X[i];
}
