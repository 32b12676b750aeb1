/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 a branch on a size of the list, from a literal operator"
// gauntlet: checks = ["source rules"]

// The number is computed by the operator of a literal.

__device__ constexpr int operator""_k(unsigned long long v) { return (int)(v * 1000 + 3); }
extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (N == 100_k)
        __syncthreads();
    if (i < N)
        Y[i] = 1.5f * X[i];
}
