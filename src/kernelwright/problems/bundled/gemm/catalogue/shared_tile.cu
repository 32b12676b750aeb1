/* kernelwright
[tune]
TILE = [8, 16, 32]
ROWS = [1, 2, 4, 8]
PAD = [0, 1]
[constraints]
divides = "TILE % ROWS == 0"
threads = "THREADS >= 16"
[let]
THREADS = "TILE * TILE // ROWS"
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, TILE)", "cdiv(M, TILE)"]
block = ["TILE", "TILE // ROWS"]
args = ["A", "B", "C", "M", "N", "K"]
*/

// A TILE x TILE tile of C a block, A and B through shared memory, ROWS elements of one column a thread.

#define STEP (TILE / ROWS)

extern "C" __global__ void __launch_bounds__(THREADS)
gemm(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K)
{
    __shared__ float a_tile[TILE][TILE + PAD];
    __shared__ float b_tile[TILE][TILE + PAD];
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    const int column = blockIdx.x * TILE + tx;
    const int first_row = blockIdx.y * TILE + ty;

    float sum[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; ++r)
        sum[r] = 0.0f;

    for (int k0 = 0; k0 < K; k0 += TILE) {
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
            const int row = first_row + r * STEP;
            const int k = k0 + ty + r * STEP;
            a_tile[ty + r * STEP][tx] = row < M && k0 + tx < K ? A[(size_t)row * K + k0 + tx] : 0.0f;
            b_tile[ty + r * STEP][tx] = k < K && column < N ? B[(size_t)k * N + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; ++k) {
            const float b = b_tile[k][tx];
#pragma unroll
            for (int r = 0; r < ROWS; ++r)
                sum[r] = fmaf(a_tile[ty + r * STEP][k], b, sum[r]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
        const int row = first_row + r * STEP;
        if (row < M && column < N)
            C[(size_t)row * N + column] = sum[r];
    }
}
