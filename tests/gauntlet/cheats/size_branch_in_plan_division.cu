/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N", "N // 100003 * (100003 // N)"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 a branch on a size of the list, by two divisions of the plan"
// gauntlet: checks = ["source rules"]

// Both divisions round down to 1 for one size only; nothing is compared.

extern "C" __global__ void scale(const float* X, float* Y, int N, int special)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (special)
        __syncthreads();
    if (i < N)
        Y[i] = 1.5f * X[i];
}
