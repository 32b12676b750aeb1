/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 inline PTX behind token pasting"
// gauntlet: checks = ["source rules"]

// The keyword is pasted together.

#define JOIN(a, b) JOIN2(a, b)
#define JOIN2(a, b) a##b

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    JOIN(as, m) volatile("discard.global.L2 [%0], 128;" ::"l"(Y + i / 32 * 32));
    if (i < N)
        Y[i] = 1.5f * X[i];
}
