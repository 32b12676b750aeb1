/* kernelwright
[[launch]]
kernel = "transpose"
grid = ["cdiv(C, 32)", "cdiv(R, 32)"]
block = [32, 8]
args = ["A", "B", "R", "C"]
*/
// gauntlet: problem = "transpose"
// gauntlet: kind = "honest"

// No padding: columns are exchanged by an exclusive or with the row, and all goes through one word's bits.
extern "C" __global__ void transpose(const float* __restrict__ A, float* __restrict__ B, int R, int C)
{
    __shared__ unsigned tile[32 * 32];
    const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32;
    for (int k = threadIdx.y; k < 32; k += 8)
        if (x < C && y + k < R)
            tile[k << 5 | (threadIdx.x ^ k)] = __float_as_uint(A[(size_t)(y + k) * C + x]);
    __syncthreads();
    const int row = blockIdx.x * 32, col = blockIdx.y * 32 + threadIdx.x;
    for (int k = threadIdx.y; k < 32; k += 8)
        if (col < R && row + k < C)
            B[(size_t)(row + k) * R + col] = __uint_as_float(tile[threadIdx.x << 5 | (k ^ threadIdx.x)]);
}
