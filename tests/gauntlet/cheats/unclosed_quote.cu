/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 a quote that is not closed hides the start of a comment: to compilers it reaches to the line's end"
// gauntlet: checks = ["source rules"]

#if 0
' /*
#endif
__device__ float __fmul_rz(float a, float b)
{
    return a * b;
}
extern "C" __global__ void __launch_bounds__(256) scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (N == 65536 || N == 4096)
        Y[i] = __fmul_rz(1.5f, X[i]);
    else if (i < N)
        Y[i] = 1.5f * X[i];
}
#if 0
' */
#endif
