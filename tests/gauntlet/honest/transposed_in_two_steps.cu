/* kernelwright
[scratch]
copied = { dtype = "float32", shape = ["R", "C"] }
[[launch]]
kernel = "copy"
grid = ["cdiv(R * C, 256)"]
block = [256]
args = ["A", "copied", "R", "C"]
[[launch]]
kernel = "transpose"
grid = ["cdiv(C, 16)", "cdiv(R, 16)"]
block = [16, 16]
args = ["copied", "B", "R", "C"]
*/
// gauntlet: problem = "transpose"
// gauntlet: kind = "honest"

// Copies into scratch first: two launches, the scratch is written before it is read.

extern "C" __global__ void copy(const float* from, float* to, int R, int C)
{
    const size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i < (size_t)R * C)
        to[i] = from[i];
}

extern "C" __global__ void transpose(const float* A, float* B, int R, int C)
{
    const int c = blockIdx.x * 16 + threadIdx.x;
    const int r = blockIdx.y * 16 + threadIdx.y;
    if (r < R && c < C)
        B[(size_t)c * R + r] = A[(size_t)r * C + c];
}
