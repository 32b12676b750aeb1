/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 a branch on a size of the list, by its remainders"
// gauntlet: checks = ["source rules"]

// Two remainders by primes: the next size that has both is 104927 larger.

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (N % 317 == 148 && N % 331 == 41)
        __syncthreads();
    if (i < N)
        Y[i] = 1.5f * X[i];
}
