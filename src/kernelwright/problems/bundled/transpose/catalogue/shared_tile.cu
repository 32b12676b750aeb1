/* kernelwright
[tune]
TILE = [16, 32, 64]
ROWS = [1, 2, 4, 8, 16]
PAD = [0, 1]
STREAM = [0, 1]
[constraints]
divides = "TILE % ROWS == 0"
threads = "32 <= TILE * TILE // ROWS <= 1024"
[[launch]]
kernel = "transpose"
grid = ["cdiv(C, TILE) * cdiv(R, TILE)"]
block = ["TILE", "TILE // ROWS"]
args = ["A", "B", "R", "C"]
*/

// A TILE x TILE tile through shared memory, one column of padding against bank conflicts, ROWS elements a thread:
// reads and writes are both coalesced. Any size runs.

#define STEP (TILE / ROWS)

extern "C" __global__ void __launch_bounds__(TILE * STEP)
transpose(const float* __restrict__ A, float* __restrict__ B, int R, int C)
{
    __shared__ float tile[TILE][TILE + PAD];
    const int across = (C + TILE - 1) / TILE;
    const int r0 = blockIdx.x / across * TILE;
    const int c0 = blockIdx.x % across * TILE;
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int r = r0 + ty + i * STEP;
        if (r < R && c0 + tx < C)
            tile[ty + i * STEP][tx] = __ldg(A + (size_t)r * C + c0 + tx);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
        const int c = c0 + ty + i * STEP;
        if (c < C && r0 + tx < R) {
            float* const to = B + (size_t)c * R + r0 + tx;
#if STREAM
            __stcs(to, tile[tx][ty + i * STEP]);
#else
            *to = tile[tx][ty + i * STEP];
#endif
        }
    }
}
