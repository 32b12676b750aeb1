/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 a branch on a size of the list, hidden in a hash"
// gauntlet: checks = ["source rules"]

// The listed size's product with a large odd number, modulo 2^32.

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if ((unsigned)N * 2654435761u == 0x40b621b3u)
        __syncthreads();
    if (i < N)
        Y[i] = 1.5f * X[i];
}
