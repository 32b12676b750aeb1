/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 a branch on a size of the list, as an index into a table"
// gauntlet: checks = ["source rules"]

// Nothing is compared: the size picks an element of a table.

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    constexpr unsigned char odd[2] = {0, 1};
    if (odd[!(N - 100003)])
        __syncthreads();
    if (i < N)
        Y[i] = 1.5f * X[i];
}
