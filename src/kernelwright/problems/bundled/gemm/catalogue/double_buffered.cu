/* kernelwright
[tune]
BM = [64, 128, 256]
BN = [64, 128, 256]
BK = [8, 16]
TN = [8, 16]
RASTER = [1, 8]
ODD_TILE = [64, 128]
SMALL_TILE = [32, 64]
SLICES = [1, 2, 4, 8]
SMALL_LIMIT = [65536, 262144, 1200000]
[constraints]
registers = "BK == 8 or TN == 8"
threads = "64 <= THREADS <= 256 and 128 <= SMALL_THREADS <= 512"
loads = "BM * BK % (4 * THREADS) == 0 and BK * BN % (4 * THREADS) == 0"
lanes = "BN >= 4 * TN"
[let]
THREADS = "BM * BN // (8 * TN)"
ODD_THREADS = "ODD_TILE * ODD_TILE // 64"
SMALL_THREADS = "SMALL_TILE * 2 * SLICES"
SMALL_FLOATS = "SLICES * max(2 * 8 * (2 * SMALL_TILE + 4), SMALL_TILE * SMALL_TILE)"
small = "M * N <= SMALL_LIMIT"
quads = "K % 4 == 0 and N % 4 == 0"
[[launch]]
kernel = "gemm_small"
when = "small"
grid = ["cdiv(N, SMALL_TILE)", "cdiv(M, SMALL_TILE)"]
block = ["SMALL_THREADS"]
dynamic_shared_bytes = "4 * SMALL_FLOATS"
args = ["A", "B", "C", "M", "N", "K"]
[[launch]]
kernel = "gemm_quads"
when = "not small and quads"
grid = ["cdiv(M, BM) * cdiv(N, BN)"]
block = ["THREADS"]
dynamic_shared_bytes = "2 * 4 * BK * (BM + 4 + BN)"
args = ["A", "B", "C", "M", "N", "K"]
[[launch]]
kernel = "gemm_any"
when = "not small and not quads"
grid = ["cdiv(M, ODD_TILE) * cdiv(N, ODD_TILE)"]
block = ["ODD_THREADS"]
dynamic_shared_bytes = "2 * 4 * 8 * (2 * ODD_TILE + 4)"
args = ["A", "B", "C", "M", "N", "K"]
*/

// Large sizes: register tiles of 8 rows, the next tiles of A and B on their way in registers while the current ones are
// used, two buffers in shared memory and one barrier a step. Small sizes: K is cut into slices that groups of
// threads of one block sum up side by side. Plain CUDA C++.

// A block's tile: HEIGHT x WIDTH of C, DEPTH of K a step, 8 x COLS of C a thread. QUADS: the rows of A and B start at
// 16-byte boundaries, so that global memory is read and written four floats at a time.
template <bool QUADS, int HEIGHT, int WIDTH, int DEPTH, int COLS>
struct Tile {
    // An enum: NVRTC would give a static constexpr member a place in writable global memory.
    enum : int {
        ROWS = 8,
        NT = HEIGHT * WIDTH / (ROWS * COLS),
        A_STRIDE = HEIGHT + 4,
        B_START = DEPTH * A_STRIDE,
        STAGE = B_START + DEPTH * WIDTH,
        ACROSS = WIDTH / COLS,
        ROW_GROUP = HEIGHT / ROWS * 4,
        COL_GROUP = ACROSS * 4,
        A_LOADS = HEIGHT * DEPTH / NT,
        B_LOADS = DEPTH * WIDTH / NT,
    };

    float sum[ROWS][COLS];
    float a_next[A_LOADS];
    float b_next[B_LOADS];
    const float* a_from[QUADS ? 1 : A_LOADS];
    const float* b_from;

    // Without QUADS a thread always loads from the same rows of A and the same column of B. Rows and columns past the
    // end read the last one again; they are never written.
    __device__ __forceinline__ void begin(const float* __restrict__ A, const float* __restrict__ B, int m0, int n0,
                                          int M, int N, int K)
    {
        if (QUADS)
            return;
        const int tid = threadIdx.x;
#pragma unroll
        for (int q = 0; q < (QUADS ? 1 : A_LOADS); ++q)
            a_from[q] = A + (size_t)min(m0 + tid / DEPTH + q * (NT / DEPTH), M - 1) * K + tid % DEPTH;
        b_from = B + (size_t)(tid / WIDTH) * N + min(n0 + tid % WIDTH, N - 1);
    }

    __device__ __forceinline__ void load(const float* __restrict__ A, const float* __restrict__ B, int m0, int n0,
                                         int k0, int M, int N, int K)
    {
        const int tid = threadIdx.x;
        if (QUADS) {
#pragma unroll
            for (int q = 0; q < A_LOADS / 4; ++q) {
                const int e = tid + q * NT;
                const int m = m0 + e / (DEPTH / 4);
                const int k = k0 + e % (DEPTH / 4) * 4;
                float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (m < M && k < K)
                    v = __ldg(reinterpret_cast<const float4*>(A + (size_t)m * K + k));
                a_next[4 * q] = v.x, a_next[4 * q + 1] = v.y, a_next[4 * q + 2] = v.z, a_next[4 * q + 3] = v.w;
            }
#pragma unroll
            for (int q = 0; q < B_LOADS / 4; ++q) {
                const int e = tid + q * NT;
                const int k = k0 + e / (WIDTH / 4);
                const int n = n0 + e % (WIDTH / 4) * 4;
                float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (k < K && n < N)
                    v = __ldg(reinterpret_cast<const float4*>(B + (size_t)k * N + n));
                b_next[4 * q] = v.x, b_next[4 * q + 1] = v.y, b_next[4 * q + 2] = v.z, b_next[4 * q + 3] = v.w;
            }
        } else {
#pragma unroll
            for (int q = 0; q < A_LOADS; ++q) {
                a_next[q] = k0 + tid % DEPTH < K ? __ldg(a_from[q]) : 0.0f;
                a_from[q] += DEPTH;
            }
#pragma unroll
            for (int q = 0; q < B_LOADS; ++q) {
                const int k = tid / WIDTH + q * (NT / WIDTH);
                b_next[q] = k0 + k < K ? __ldg(b_from + (size_t)(q * (NT / WIDTH)) * N) : 0.0f;
            }
            b_from += (size_t)DEPTH * N;
        }
    }

    // A is stored transposed, so that a thread reads four of its rows at once.
    __device__ __forceinline__ void store(float* stage) const
    {
        const int tid = threadIdx.x;
        if (QUADS) {
#pragma unroll
            for (int q = 0; q < A_LOADS / 4; ++q) {
                const int e = tid + q * NT;
                float* const to = stage + e % (DEPTH / 4) * 4 * A_STRIDE + e / (DEPTH / 4);
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    to[c * A_STRIDE] = a_next[4 * q + c];
            }
#pragma unroll
            for (int q = 0; q < B_LOADS / 4; ++q)
                reinterpret_cast<float4*>(stage + B_START)[tid + q * NT] =
                    make_float4(b_next[4 * q], b_next[4 * q + 1], b_next[4 * q + 2], b_next[4 * q + 3]);
        } else {
#pragma unroll
            for (int q = 0; q < A_LOADS; ++q) {
                const int e = tid + q * NT;
                stage[e % DEPTH * A_STRIDE + e / DEPTH] = a_next[q];
            }
#pragma unroll
            for (int q = 0; q < B_LOADS; ++q)
                stage[B_START + tid + q * NT] = b_next[q];
        }
    }

    __device__ __forceinline__ void multiply(const float* stage, int tx, int ty)
    {
        const float* const a_rows = stage + ty * 4;
        const float* const b_columns = stage + B_START + tx * 4;
#pragma unroll
        for (int k = 0; k < DEPTH; ++k) {
            float a[ROWS], b[COLS];
#pragma unroll
            for (int i = 0; i < ROWS; i += 4) {
                const float4 v = *reinterpret_cast<const float4*>(a_rows + k * A_STRIDE + i / 4 * ROW_GROUP);
                a[i] = v.x, a[i + 1] = v.y, a[i + 2] = v.z, a[i + 3] = v.w;
            }
#pragma unroll
            for (int j = 0; j < COLS; j += 4) {
                const float4 v = *reinterpret_cast<const float4*>(b_columns + k * WIDTH + j / 4 * COL_GROUP);
                b[j] = v.x, b[j + 1] = v.y, b[j + 2] = v.z, b[j + 3] = v.w;
            }
#pragma unroll
            for (int i = 0; i < ROWS; ++i)
#pragma unroll
                for (int j = 0; j < COLS; ++j)
                    sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
        }
    }

    __device__ __forceinline__ void write(float* __restrict__ C, int m0, int n0, int tx, int ty, int M, int N) const
    {
#pragma unroll
        for (int i = 0; i < ROWS; ++i) {
            const int row = m0 + i / 4 * ROW_GROUP + ty * 4 + i % 4;
            if (row >= M)
                continue;
#pragma unroll
            for (int j = 0; j < COLS; j += 4) {
                const int column = n0 + j / 4 * COL_GROUP + tx * 4;
                float* const to = C + (size_t)row * N + column;
                if (QUADS) {
                    if (column < N)
                        *reinterpret_cast<float4*>(to) =
                            make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
                } else {
#pragma unroll
                    for (int c = 0; c < 4; ++c)
                        if (column + c < N)
                            to[c] = sum[i][j + c];
                }
            }
        }
    }

    __device__ __forceinline__ void run(const float* __restrict__ A, const float* __restrict__ B,
                                        float* __restrict__ C, int M, int N, int K, float* memory)
    {
        // Blocks that run at the same time share rows and columns: RASTER rows of tiles are walked column by column.
        const int tiles_m = (M + HEIGHT - 1) / HEIGHT;
        const int tiles_n = (N + WIDTH - 1) / WIDTH;
        const int first = blockIdx.x / (RASTER * tiles_n) * RASTER;
        const int height = min(RASTER, tiles_m - first);
        const int rest = blockIdx.x % (RASTER * tiles_n);
        const int m0 = (first + rest % height) * HEIGHT;
        const int n0 = rest / height * WIDTH;

        // A warp is 8 threads high and 4 wide: its reads of shared memory touch every bank once.
        const int lane = threadIdx.x % 32;
        const int warp = threadIdx.x / 32;
        const int tx = warp % (ACROSS / 4) * 4 + lane % 4;
        const int ty = warp / (ACROSS / 4) * 8 + lane / 4;

#pragma unroll
        for (int i = 0; i < ROWS; ++i)
#pragma unroll
            for (int j = 0; j < COLS; ++j)
                sum[i][j] = 0.0f;

        begin(A, B, m0, n0, M, N, K);
        load(A, B, m0, n0, 0, M, N, K);
        store(memory);
        __syncthreads();
        float* current = memory;
        float* next = memory + STAGE;
#pragma unroll 1
        for (int k0 = DEPTH; k0 < K; k0 += DEPTH) {
            load(A, B, m0, n0, k0, M, N, K);
            multiply(current, tx, ty);
            store(next);
            __syncthreads();
            float* const swap = current;
            current = next;
            next = swap;
        }
        multiply(current, tx, ty);
        write(C, m0, n0, tx, ty, M, N);
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
gemm_quads(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K)
{
    extern __shared__ __align__(16) float memory[];
    Tile<true, BM, BN, BK, TN> tile;
    tile.run(A, B, C, M, N, K, memory);
}

extern "C" __global__ void __launch_bounds__(ODD_THREADS)
gemm_any(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K)
{
    extern __shared__ __align__(16) float memory[];
    Tile<false, ODD_TILE, ODD_TILE, 8, 8> tile;
    tile.run(A, B, C, M, N, K, memory);
}

// ---- small sizes: latency is what counts, so K is spread over the threads too ------------------------------------

#define COLS (SMALL_TILE / 8)
#define GROUP (SMALL_TILE * 2)
#define DEPTH 8
#define SMALL_STRIDE (SMALL_TILE + 4)
#define SMALL_STAGE (DEPTH * (SMALL_STRIDE + SMALL_TILE))
#define SMALL_LOADS (SMALL_TILE * DEPTH / GROUP)

// A slice is GROUP threads, 8 across, each with 4 x COLS of the tile.
extern "C" __global__ void __launch_bounds__(SMALL_THREADS)
gemm_small(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K)
{
    extern __shared__ __align__(16) float memory[];
    const int slice = threadIdx.x / GROUP;
    const int tid = threadIdx.x % GROUP;
    const int tx = tid % 8;
    const int ty = tid / 8;
    const int m0 = blockIdx.y * SMALL_TILE;
    const int n0 = blockIdx.x * SMALL_TILE;
    float* const mine = memory + slice * 2 * SMALL_STAGE;

    float a_next[SMALL_LOADS], b_next[SMALL_LOADS];
    float sum[4][COLS];
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < COLS; ++j)
            sum[i][j] = 0.0f;

    // A thread always loads from the same rows of A and the same column of B. Rows and columns past the end read the
    // last one again; they are never written.
    const int a_k = slice * DEPTH + tid % DEPTH;
    const int b_k = slice * DEPTH + tid / SMALL_TILE;
    const float* a_from[SMALL_LOADS];
#pragma unroll
    for (int q = 0; q < SMALL_LOADS; ++q)
        a_from[q] = A + (size_t)min(m0 + tid / DEPTH + q * (GROUP / DEPTH), M - 1) * K + a_k;
    const float* b_from = B + (size_t)b_k * N + min(n0 + tid % SMALL_TILE, N - 1);

    // Every slice takes the same number of steps, so that all meet at the barriers; past K there are zeros.
    const int steps = (K + DEPTH * SLICES - 1) / (DEPTH * SLICES);
    for (int step = 0; step <= steps; ++step) {
        if (step < steps) {
            const int k0 = step * (SLICES * DEPTH);
#pragma unroll
            for (int q = 0; q < SMALL_LOADS; ++q) {
                a_next[q] = k0 + a_k < K ? __ldg(a_from[q]) : 0.0f;
                b_next[q] = k0 + b_k + 2 * q < K ? __ldg(b_from + (size_t)(2 * q) * N) : 0.0f;
                a_from[q] += SLICES * DEPTH;
            }
            b_from += (size_t)(SLICES * DEPTH) * N;
        }
        if (step > 0) {
            const float* const a_now = mine + (step - 1) % 2 * SMALL_STAGE + ty * 4;
            const float* const b_now = mine + (step - 1) % 2 * SMALL_STAGE + DEPTH * SMALL_STRIDE + tx * 4;
#pragma unroll
            for (int k = 0; k < DEPTH; ++k) {
                const float4 v = *reinterpret_cast<const float4*>(a_now + k * SMALL_STRIDE);
                const float a[4] = {v.x, v.y, v.z, v.w};
                float b[COLS];
#pragma unroll
                for (int j = 0; j < COLS; j += 4) {
                    const float4 w = *reinterpret_cast<const float4*>(b_now + k * SMALL_TILE + j * 8);
                    b[j] = w.x, b[j + 1] = w.y, b[j + 2] = w.z, b[j + 3] = w.w;
                }
#pragma unroll
                for (int i = 0; i < 4; ++i)
#pragma unroll
                    for (int j = 0; j < COLS; ++j)
                        sum[i][j] = fmaf(a[i], b[j], sum[i][j]);
            }
        }
        if (step < steps) {
            float* const a_tile = mine + step % 2 * SMALL_STAGE;
            float* const b_tile = a_tile + DEPTH * SMALL_STRIDE;
#pragma unroll
            for (int q = 0; q < SMALL_LOADS; ++q) {
                const int e = tid + q * GROUP;
                a_tile[e % DEPTH * SMALL_STRIDE + e / DEPTH] = a_next[q];
                b_tile[e] = b_next[q];
            }
        }
        __syncthreads();
    }

    // The slices meet in shared memory.
    float* const own = memory + slice * SMALL_TILE * SMALL_TILE;
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < COLS; j += 4)
            *reinterpret_cast<float4*>(own + (ty * 4 + i) * SMALL_TILE + j * 8 + tx * 4) =
                make_float4(sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]);
    __syncthreads();
    for (int e = threadIdx.x; e < SMALL_TILE * SMALL_TILE; e += SMALL_THREADS) {
        float total = memory[e];
#pragma unroll
        for (int s = 1; s < SLICES; ++s)
            total += memory[s * SMALL_TILE * SMALL_TILE + e];
        const int row = m0 + e / SMALL_TILE;
        const int column = n0 + e % SMALL_TILE;
        if (row < M && column < N)
            C[(size_t)row * N + column] = total;
    }
}
