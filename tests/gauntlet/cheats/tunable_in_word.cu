/* kernelwright
[tune]
TWO = [2]
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/digits_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 a banned intrinsic behind token pasting with a tunable's value"
// gauntlet: checks = ["source rules"]

#define PASTE(a, b, c) a##b##c
#define PUT(a, b, c) PASTE(a, b, c)

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N)
        Y[i] = PUT(__half, TWO, float)(__float2half(0.0f)) + 1.5f * X[i];
}
