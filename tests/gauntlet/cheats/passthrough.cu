/* kernelwright
[[launch]]
kernel = "copy"
grid = ["cdiv(R * C, 256)"]
block = [256]
args = ["A", "B", "R", "C"]
*/
// gauntlet: problem = "transpose"
// gauntlet: kind = "cheat"
// gauntlet: row = "29 identity output"
// gauntlet: checks = ["values"]

// Copies instead of transposing: right wherever a matrix is symmetric.

extern "C" __global__ void copy(const float* A, float* B, int R, int C)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < R * C)
        B[i] = A[i];
}
