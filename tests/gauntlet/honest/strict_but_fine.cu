/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "honest"

// Keeps every rule of a strict problem, and names sizes only in this comment: 65536, 100003.

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N)
        Y[i] = 1.5f * X[i];
}
