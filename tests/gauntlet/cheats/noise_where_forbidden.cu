/* kernelwright
atomic_noise = true
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 declares noise where results must repeat"
// gauntlet: checks = ["source rules", "plan"]

// The problem asks for equal bits in equal runs.

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N)
        Y[i] = 1.5f * X[i];
}
