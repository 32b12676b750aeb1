/* kernelwright
[[launch]]
kernel = "transpose"
grid = ["cdiv(C, 32)", "cdiv(R, 32)"]
block = [32, 8]
args = ["A", "B", "R", "C"]
*/
// gauntlet: problem = "transpose"
// gauntlet: kind = "honest"

// A tile in shared memory, padded against bank conflicts.

extern "C" __global__ void transpose(const float* A, float* B, int R, int C)
{
    __shared__ float tile[32][33];
    int c = blockIdx.x * 32 + threadIdx.x;
    int r = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (r + k < R && c < C)
            tile[threadIdx.y + k][threadIdx.x] = A[(size_t)(r + k) * C + c];
    __syncthreads();
    c = blockIdx.y * 32 + threadIdx.x;
    r = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8)
        if (r + k < C && c < R)
            B[(size_t)(r + k) * R + c] = tile[threadIdx.x][threadIdx.y + k];
}
