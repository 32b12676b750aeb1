/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "55 a launch bound where none is allowed"
// gauntlet: checks = ["source rules"]

// Steers the register allocation, which this problem forbids.


extern "C" __global__ void __launch_bounds__(256, 8) scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N)
        Y[i] = 1.5f * X[i];
}
