/* kernelwright
[[launch]]
kernel = "transpose"
grid = ["cdiv(C, 16)", "cdiv(R, 16)"]
block = [16, 16]
args = ["A", "B", "R", "C"]
*/
// gauntlet: problem = "transpose"
// gauntlet: kind = "honest"

// Threads without work leave at once; nobody waits for them.

extern "C" __global__ void transpose(const float* A, float* B, int R, int C)
{
    const int c = blockIdx.x * 16 + threadIdx.x;
    if (c >= C)
        return;
    const int r = blockIdx.y * 16 + threadIdx.y;
    if (r >= R)
        return;
    B[(size_t)c * R + r] = A[(size_t)r * C + c];
}
