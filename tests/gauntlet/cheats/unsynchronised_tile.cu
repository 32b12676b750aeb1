/* kernelwright
[[launch]]
kernel = "transpose"
grid = ["cdiv(C, 16)", "cdiv(R, 16)"]
block = [16, 16]
args = ["A", "B", "R", "C"]
*/
// gauntlet: problem = "transpose"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 race: a tile is read before it is complete"
// gauntlet: checks = ["checked mode", "values", "poison", "repeat", "compute-sanitizer"]

// No barrier between writing and reading the tile.

extern "C" __global__ void transpose(const float* A, float* B, int R, int C)
{
    __shared__ float tile[16][17];
    const int c = blockIdx.x * 16 + threadIdx.x;
    const int r = blockIdx.y * 16 + threadIdx.y;
    if (r < R && c < C)
        tile[threadIdx.y][threadIdx.x] = A[(size_t)r * C + c];
    const int to_row = blockIdx.x * 16 + threadIdx.y;
    const int to_column = blockIdx.y * 16 + threadIdx.x;
    if (to_row < C && to_column < R)
        B[(size_t)to_row * R + to_column] = tile[threadIdx.x][threadIdx.y];
}
