/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "9 cache hints: lines are kept in L2 by inline PTX"
// gauntlet: checks = ["source rules"]

// Asks the L2 to keep what the next call will read, which this problem forbids.

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    asm volatile("prefetch.global.L2::evict_last [%0];" ::"l"(X + min(i, N - 1)));
    if (i < N)
        Y[i] = 1.5f * X[i];
}
