/* kernelwright
[tune]
T = [16, 32]
[[launch]]
kernel = "transpose"
grid = ["cdiv(C, T)", "cdiv(R, T)"]
block = ["T", "T"]
dynamic_shared_bytes = "4 * T * T"
args = ["A", "B", "R", "C"]
*/
// gauntlet: problem = "transpose"
// gauntlet: kind = "honest"

// The tile is dynamic shared memory, swizzled instead of padded.

extern "C" __global__ void transpose(const float* A, float* B, int R, int C)
{
    extern __shared__ float tile[];
    const int x = threadIdx.x;
    const int y = threadIdx.y;
    if (blockIdx.y * T + y < R && blockIdx.x * T + x < C)
        tile[y * T + (x ^ y)] = A[(size_t)(blockIdx.y * T + y) * C + blockIdx.x * T + x];
    __syncthreads();
    if (blockIdx.x * T + y < C && blockIdx.y * T + x < R)
        B[(size_t)(blockIdx.x * T + y) * R + blockIdx.y * T + x] = tile[x * T + (x ^ y)];
}
