/* kernelwright
[tune]
BM = [64, 128, 256]
BN = [128, 256]
TN = [8, 16]
BK = [8, 16]
A_DIRECT = [0, 1]
STAGES = [2, 3, 4]
MAX_IDLE = [96, 1000000]
SMALL_TILE = [32, 64]
SLICES = [2, 4]
SMALL_LIMIT = [65536, 262144, 1200000]
[constraints]
threads = "64 <= THREADS <= 512"
accumulators = "BM * BN <= 32768"
loads = "BN <= 16 * TN and BM <= 2 * BK * TN"
pipeline = "STAGES >= 3 if A_DIRECT else STAGES == 2"
direct_registers = "TN == 16 or not A_DIRECT"
[let]
THREADS = "BM * BN // (8 * TN)"
PER_SM = "32768 // (BM * BN)"
BLOCKS = "num_sms * PER_SM"
A_STRIDE = "BK + 4 if A_DIRECT else BM + 4"
A_FLOATS = "BM * A_STRIDE if A_DIRECT else BK * A_STRIDE"
SMALL_THREADS = "SMALL_TILE * 2 * SLICES"
SMALL_FLOATS = "SLICES * max(2 * 8 * (2 * SMALL_TILE + 4), SMALL_TILE * SMALL_TILE)"
large = "K % BK == 0 and N % 4 == 0 and M * N > SMALL_LIMIT"
tiles = "cdiv(M, BM) * cdiv(N, BN)"
idle = "(cdiv(tiles, BLOCKS) * BLOCKS - tiles) * K // BLOCKS"
whole = "tiles if idle <= MAX_IDLE else max(tiles // BLOCKS - 1, 0) * BLOCKS"
cut = "tiles - whole"
workers = "max(1, min(BLOCKS, cut * K // 64))"
[scratch]
partial = { dtype = "float32", shape = ["BLOCKS * BM * BN"] }
[[launch]]
kernel = "gemm_stream_k"
when = "large"
grid = ["BLOCKS"]
block = ["THREADS"]
dynamic_shared_bytes = "4 * STAGES * (A_FLOATS + BK * BN)"
args = ["A", "B", "C", "partial", "M", "N", "K", "whole", "cut", "workers"]
[[launch]]
kernel = "gemm_fix"
when = "large and cut > 0"
grid = ["cut", 8]
block = [256]
args = ["C", "partial", "M", "N", "K", "whole", "cut", "workers"]
[[launch]]
kernel = "gemm_small"
when = "not large"
grid = ["cdiv(N, SMALL_TILE)", "cdiv(M, SMALL_TILE)"]
block = ["SMALL_THREADS"]
dynamic_shared_bytes = "4 * SMALL_FLOATS"
args = ["A", "B", "C", "M", "N", "K"]
*/

// Stream-K (Osama et al., PPoPP 2023) with cp.async. Persistent blocks take whole tiles first; the last tiles are cut
// evenly along K over all blocks. A segment that starts at k = 0 is written to C, any other goes to the block's slot
// in scratch, and a second launch adds the slots to C. Odd and small sizes go to a kernel that slices K in a block.
//
// A warp's tile is 64 x 4 TN, a thread's 8 x TN. A_DIRECT 0: A passes through registers and is stored [k][m];
// 1: cp.async keeps it [m][k], and a thread reads four k at a time.

#define WARP_N (4 * TN)
#define WARPS_N (BN / WARP_N)
#define RASTER 16
#if A_DIRECT
#define A_QUADS (BK / 4)
#define A_ROWS (THREADS / A_QUADS)
#else
#define A_ROWS (THREADS / 2)
#define A_HALVES (BK / 8)
#endif
#define A_PASSES (BM / A_ROWS)
#define B_FLOATS (BK * BN)
#define B_QUADS (BN / 4)
#define B_ROWS (THREADS / B_QUADS)
#define B_PASSES (BK / B_ROWS)

#ifdef KERNELWRIGHT_CPU
__device__ __forceinline__ void copy_async(float* to, const float* from)
{
    *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(from);
}
__device__ __forceinline__ void copy_commit() {}
__device__ __forceinline__ void copy_wait() {}
__device__ __forceinline__ float4 load_once(const float* p)
{
    return *reinterpret_cast<const float4*>(p);
}
#else
__device__ __forceinline__ void copy_async(float* to, const float* from)
{
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n" ::"r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from)
                 : "memory");
}

__device__ __forceinline__ void copy_commit()
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

// All but the newest STAGES - 2 groups have arrived.
__device__ __forceinline__ void copy_wait()
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(STAGES - 2) : "memory");
}

__device__ __forceinline__ float4 load_once(const float* p)
{
    float4 v;
    asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%0,%1,%2,%3}, [%4];\n"
                 : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
                 : "l"(p));
    return v;
}
#endif

// Row and column of tile number `tile`: RASTER rows of tiles are walked column by column, so that blocks that run at
// the same time share rows of A and columns of B in the L2 cache.
__device__ __forceinline__ void tile_place(int tile, int M, int N, int& m0, int& n0)
{
    const int tiles_m = (M + BM - 1) / BM;
    const int tiles_n = (N + BN - 1) / BN;
    const int first = tile / (RASTER * tiles_n) * RASTER;
    const int height = min(RASTER, tiles_m - first);
    const int rest = tile % (RASTER * tiles_n);
    m0 = (first + rest % height) * BM;
    n0 = rest / height * BN;
}

// First k-step of worker `w`: the steps of the cut tiles are dealt evenly.
__device__ __forceinline__ int first_step(int w, int total, int workers)
{
    return (int)((unsigned long long)w * (unsigned)total / (unsigned)workers);
}

// The next piece of work of a block: `count` k-steps of `tile` from k-step `start`.
struct Schedule {
    int next_tile, step, last_step;
    int tile, start, count;

    __device__ __forceinline__ Schedule(int whole, int cut, int workers, int steps)
    {
        next_tile = blockIdx.x;
        step = last_step = 0;
        if (cut > 0 && (int)blockIdx.x < workers) {
            step = first_step(blockIdx.x, cut * steps, workers);
            last_step = first_step(blockIdx.x + 1, cut * steps, workers);
        }
    }

    __device__ __forceinline__ bool advance(int whole, int steps)
    {
        if (next_tile < whole) {
            tile = next_tile;
            start = 0;
            count = steps;
            next_tile += gridDim.x;
            return true;
        }
        if (step >= last_step)
            return false;
        tile = whole + step / steps;
        start = step % steps;
        count = min(steps - start, last_step - step);
        step += count;
        return true;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, PER_SM)
gemm_stream_k(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C,
              float* __restrict__ partial, int M, int N, int K, int whole, int cut, int workers)
{
    extern __shared__ __align__(16) float memory[];
    float* const a_tiles = memory;
    float* const b_tiles = memory + STAGES * A_FLOATS;

    const int tid = threadIdx.x;
    const int lane = tid % 32;
    const int warp_m = tid / 32 / WARPS_N;
    const int warp_n = tid / 32 % WARPS_N;
    // 8 x 4 threads a warp, in an order that makes reads of 16 bytes a quarter-warp free of bank conflicts.
    const int row_lane = lane / 2 % 8;
    const int column_lane = lane % 2 + lane / 16 * 2;

#if A_DIRECT
    const int a_k = tid % A_QUADS * 4;
    const int a_row = tid / A_QUADS;
    const int a_to = a_row * A_STRIDE + a_k;
    const int a_from = (warp_m * 64 + row_lane) * A_STRIDE;
#else
    const int a_k = tid % 2 * 4;
    const int a_row = tid / 2;
    const int a_to = a_k * A_STRIDE + a_row;
    const int a_from = warp_m * 64 + row_lane * 4;
#endif
    const int b_column = tid % B_QUADS * 4;
    const int b_row = tid / B_QUADS;
    const int b_to = b_row * BN + b_column;
    const int b_from = warp_n * WARP_N + column_lane * 4;
    const size_t b_pass = (size_t)B_ROWS * N;
    const size_t b_step = (size_t)BK * N;

    const int steps = K / BK;
    Schedule work(whole, cut, workers, steps);
    while (work.advance(whole, steps)) {
        int m0, n0;
        tile_place(work.tile, M, N, m0, n0);
        const int count = work.count;

        // Rows and columns past the end read the last ones again; they are never written.
        const float* a_next[A_PASSES];
#pragma unroll
        for (int p = 0; p < A_PASSES; ++p)
            a_next[p] = A + (size_t)min(m0 + a_row + p * A_ROWS, M - 1) * K + (work.start * BK + a_k);
        const float* b_next = B + (size_t)(work.start * BK + b_row) * N + min(n0 + b_column, N - 4);

        float sum[8][TN];
#pragma unroll
        for (int i = 0; i < 8; ++i)
#pragma unroll
            for (int j = 0; j < TN; ++j)
                sum[i][j] = 0.0f;

        // ---- fill the pipeline ----
#if A_DIRECT
#pragma unroll
        for (int s = 0; s < STAGES - 1; ++s) {
            if (s < count) {
#pragma unroll
                for (int p = 0; p < A_PASSES; ++p) {
                    copy_async(a_tiles + s * A_FLOATS + a_to + p * A_ROWS * A_STRIDE, a_next[p]);
                    a_next[p] += BK;
                }
#pragma unroll
                for (int p = 0; p < B_PASSES; ++p)
                    copy_async(b_tiles + s * B_FLOATS + b_to + p * B_ROWS * BN, b_next + p * b_pass);
                b_next += b_step;
            }
            copy_commit();
        }
#else
        float4 a_staged[A_PASSES * A_HALVES];
#pragma unroll
        for (int p = 0; p < A_PASSES; ++p) {
#pragma unroll
            for (int h = 0; h < A_HALVES; ++h)
                a_staged[p * A_HALVES + h] = load_once(a_next[p] + h * 8);
            a_next[p] += BK;
        }
#pragma unroll
        for (int p = 0; p < B_PASSES; ++p)
            copy_async(b_tiles + b_to + p * B_ROWS * BN, b_next + p * b_pass);
        b_next += b_step;
        copy_commit();
#pragma unroll
        for (int p = 0; p < A_PASSES; ++p)
#pragma unroll
            for (int h = 0; h < A_HALVES; ++h) {
                float* const to = a_tiles + a_to + h * 8 * A_STRIDE + p * A_ROWS;
                const float4 v = a_staged[p * A_HALVES + h];
                to[0] = v.x;
                to[A_STRIDE] = v.y;
                to[2 * A_STRIDE] = v.z;
                to[3 * A_STRIDE] = v.w;
            }
#endif
        copy_wait();
        __syncthreads();

        // ---- fragments of the first k; in the loop, those of the next k are read while this one is multiplied ----
        float b[2][TN];
#pragma unroll
        for (int j = 0; j < TN / 4; ++j) {
            const float4 v = *reinterpret_cast<const float4*>(b_tiles + b_from + 16 * j);
            b[0][4 * j] = v.x, b[0][4 * j + 1] = v.y, b[0][4 * j + 2] = v.z, b[0][4 * j + 3] = v.w;
        }
#if A_DIRECT
        float a[8][4];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const float4 v = *reinterpret_cast<const float4*>(a_tiles + a_from + i * 8 * A_STRIDE);
            a[i][0] = v.x, a[i][1] = v.y, a[i][2] = v.z, a[i][3] = v.w;
        }
#else
        float a[2][8];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const float4 v = *reinterpret_cast<const float4*>(a_tiles + a_from + h * 32);
            a[0][4 * h] = v.x, a[0][4 * h + 1] = v.y, a[0][4 * h + 2] = v.z, a[0][4 * h + 3] = v.w;
        }
#endif

        int read = 0;
        int write = STAGES - 1;
#pragma unroll 1
        for (int step = 0; step < count; ++step) {
            if (step + (STAGES - 1) < count) {
#pragma unroll
                for (int p = 0; p < A_PASSES; ++p) {
#if A_DIRECT
                    copy_async(a_tiles + write * A_FLOATS + a_to + p * A_ROWS * A_STRIDE, a_next[p]);
#else
#pragma unroll
                    for (int h = 0; h < A_HALVES; ++h)
                        a_staged[p * A_HALVES + h] = load_once(a_next[p] + h * 8);
#endif
                    a_next[p] += BK;
                }
#pragma unroll
                for (int p = 0; p < B_PASSES; ++p)
                    copy_async(b_tiles + write * B_FLOATS + b_to + p * B_ROWS * BN, b_next + p * b_pass);
                b_next += b_step;
            }
            copy_commit();

            // The last step has no next tile: it reads its own again, for nothing.
            const int after = step + 1 == count ? read : (read + 1 == STAGES ? 0 : read + 1);
            const float* const a_now = a_tiles + read * A_FLOATS + a_from;
            const float* const b_now = b_tiles + read * B_FLOATS + b_from;
            const float* const a_after = a_tiles + after * A_FLOATS + a_from;
            const float* const b_after = b_tiles + after * B_FLOATS + b_from;

#pragma unroll
            for (int k = 0; k < BK; ++k) {
#if !A_DIRECT
                if (k == BK - 2) {
                    // In the last step these are old values; they land in the stage that nobody reads.
#pragma unroll
                    for (int p = 0; p < A_PASSES; ++p)
#pragma unroll
                        for (int h = 0; h < A_HALVES; ++h) {
                            float* const to = a_tiles + write * A_FLOATS + a_to + h * 8 * A_STRIDE + p * A_ROWS;
                            const float4 v = a_staged[p * A_HALVES + h];
                            to[0] = v.x;
                            to[A_STRIDE] = v.y;
                            to[2 * A_STRIDE] = v.z;
                            to[3 * A_STRIDE] = v.w;
                        }
                }
#endif
                if (k == BK - 1) {
                    copy_wait();
                    __syncthreads();
                }
                const float* const b_row_next = k == BK - 1 ? b_after : b_now + (k + 1) * BN;
#pragma unroll
                for (int j = 0; j < TN / 4; ++j) {
                    const float4 v = *reinterpret_cast<const float4*>(b_row_next + 16 * j);
                    float* const to = b[(k + 1) % 2] + 4 * j;
                    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
                }
#if !A_DIRECT
                const float* const a_row_next = k == BK - 1 ? a_after : a_now + (k + 1) * A_STRIDE;
#pragma unroll
                for (int h = 0; h < 2; ++h) {
                    const float4 v = *reinterpret_cast<const float4*>(a_row_next + h * 32);
                    float* const to = a[(k + 1) % 2] + 4 * h;
                    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
                }
#endif
#pragma unroll
                for (int i = 0; i < 8; ++i) {
#if A_DIRECT
                    const float value = a[i][k % 4];
#else
                    const float value = a[k % 2][i];
#endif
#pragma unroll
                    for (int j = 0; j < TN; ++j) {
                        const int column = i % 2 ? TN - 1 - j : j;
                        sum[i][column] = fmaf(value, b[k % 2][column], sum[i][column]);
                    }
#if A_DIRECT
                    if (k % 4 == 3) {
                        const float* const from = k == BK - 1 ? a_after : a_now + (k + 1);
                        const float4 v = *reinterpret_cast<const float4*>(from + i * 8 * A_STRIDE);
                        a[i][0] = v.x, a[i][1] = v.y, a[i][2] = v.z, a[i][3] = v.w;
                    }
#endif
                }
            }
            read = read + 1 == STAGES ? 0 : read + 1;
            write = write + 1 == STAGES ? 0 : write + 1;
        }

        // ---- write the segment ----
        float* to = C + (size_t)m0 * N + n0;
        size_t stride = N;
        if (work.start > 0) {
            to = partial + (size_t)blockIdx.x * (BM * BN);
            stride = BN;
        }
#pragma unroll
        for (int i = 0; i < 8; ++i) {
#if A_DIRECT
            const int row = warp_m * 64 + row_lane + 8 * i;
#else
            const int row = warp_m * 64 + row_lane * 4 + i % 4 + i / 4 * 32;
#endif
#pragma unroll
            for (int j = 0; j < TN / 4; ++j) {
                const int column = b_from + 16 * j;
                if (m0 + row < M && n0 + column < N)
                    *reinterpret_cast<float4*>(to + row * stride + column) =
                        make_float4(sum[i][4 * j], sum[i][4 * j + 1], sum[i][4 * j + 2], sum[i][4 * j + 3]);
            }
        }
        // Nobody may refill the stages while another warp still reads them.
        __syncthreads();
    }
}

// Adds to C the segments that did not start at k = 0: block x does cut tile x, the blocks along y share it.
extern "C" __global__ void __launch_bounds__(256)
gemm_fix(float* __restrict__ C, const float* __restrict__ partial, int M, int N, int K, int whole, int cut,
         int workers)
{
    const int steps = K / BK;
    const unsigned long long total = (unsigned long long)cut * steps;
    const unsigned long long low = (unsigned long long)blockIdx.x * steps;
    // Workers whose first step lies inside this tile but not at its start.
    const int begin = (int)(((low + 1) * workers + total - 1) / total);
    const int end = (int)(((low + steps) * workers + total - 1) / total);
    if (begin >= end)
        return;
    int m0, n0;
    tile_place(whole + blockIdx.x, M, N, m0, n0);
    for (int e = blockIdx.y * 256 + threadIdx.x; e < BM * BN / 4; e += gridDim.y * 256) {
        const int row = m0 + e / B_QUADS;
        const int column = n0 + e % B_QUADS * 4;
        if (row >= M || column >= N)
            continue;
        float4* const to = reinterpret_cast<float4*>(C + (size_t)row * N + column);
        float4 v = *to;
#pragma unroll 4
        for (int w = begin; w < end; ++w) {
            const float4 x = reinterpret_cast<const float4*>(partial + (size_t)w * (BM * BN))[e];
            v.x += x.x;
            v.y += x.y;
            v.z += x.z;
            v.w += x.w;
        }
        *to = v;
    }
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
