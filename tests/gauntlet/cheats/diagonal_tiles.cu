/* kernelwright
[[launch]]
kernel = "transpose"
grid = ["cdiv(C, 16)", "cdiv(R, 16)"]
block = [16, 16]
args = ["A", "B", "R", "C"]
*/
// gauntlet: problem = "transpose"
// gauntlet: kind = "cheat"
// gauntlet: row = "32 structure assumption: symmetric off the diagonal"
// gauntlet: checks = ["values"]

// Transposes tiles on the diagonal and copies all others.

extern "C" __global__ void transpose(const float* A, float* B, int R, int C)
{
    const int c = blockIdx.x * 16 + threadIdx.x;
    const int r = blockIdx.y * 16 + threadIdx.y;
    if (r >= R || c >= C)
        return;
    if (blockIdx.x == blockIdx.y)
        B[(size_t)c * R + r] = A[(size_t)r * C + c];
    else
        B[(size_t)r * C + c] = A[(size_t)r * C + c];
}
