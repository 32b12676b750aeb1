/* kernelwright
[tune]
TILE_R = [32, 64, 128]
TILE_C = [32, 64, 128]
THREADS = [64, 128, 256]
STREAM = [0, 1, 2]
ODD_ROWS = [4, 8, 16]
WALK = [0, 1]
[constraints]
whole = "TILE_R * TILE_C % (16 * THREADS) == 0"
registers = "BLOCKS_A_THREAD <= 4"
shared = "4 * TILE_R * TILE_C <= 48 * 1024"
[let]
BLOCKS_A_THREAD = "TILE_R * TILE_C // (16 * THREADS)"
ODD_STEP = "64 // ODD_ROWS"
[[launch]]
kernel = "transpose_quads"
when = "R % 4 == 0 and C % 4 == 0"
grid = ["cdiv(C, TILE_C) * cdiv(R, TILE_R)"]
block = ["THREADS"]
args = ["A", "B", "R", "C"]
[[launch]]
kernel = "transpose_any"
when = "R % 4 != 0 or C % 4 != 0"
grid = ["cdiv(C, 64) * cdiv(R, 64)"]
block = [64, "ODD_STEP"]
args = ["A", "B", "R", "C"]
*/

// A TILE_R x TILE_C tile through shared memory in float4: a thread transposes blocks of 4 x 4 in registers, shared
// memory reorders the float4 so that whole cache lines are read and written. Places are swizzled by XOR: no bank
// conflict, no padding. Odd sizes take scalars and a 64 x 64 tile. WALK 1: tiles are walked down the columns of A.
// STREAM 0: plain; 1: streaming stores; 2: streaming loads and stores.

#define QUADS_R (TILE_R / 4)
#define QUADS_C (TILE_C / 4)

__device__ __forceinline__ float4 load(const float* p)
{
#if STREAM == 2
    return __ldcs(reinterpret_cast<const float4*>(p));
#else
    return __ldg(reinterpret_cast<const float4*>(p));
#endif
}

__device__ __forceinline__ void store(float* p, float4 v)
{
#if STREAM == 0
    *reinterpret_cast<float4*>(p) = v;
#else
    __stcs(reinterpret_cast<float4*>(p), v);
#endif
}

__device__ __forceinline__ void tile_place(int R, int C, int height, int width, int& r0, int& c0)
{
#if WALK
    const int down = (R + height - 1) / height;
    r0 = blockIdx.x % down * height;
    c0 = blockIdx.x / down * width;
#else
    const int across = (C + width - 1) / width;
    r0 = blockIdx.x / across * height;
    c0 = blockIdx.x % across * width;
#endif
}

// Place of the float4 with rows 4 quad .. 4 quad + 3 of A's column `column`. Eight neighbours in either direction
// fall into the eight groups of four banks.
__device__ __forceinline__ int place(int column, int quad)
{
    return column * QUADS_R + (quad ^ (column / 4 % 8));
}

extern "C" __global__ void __launch_bounds__(THREADS)
transpose_quads(const float* __restrict__ A, float* __restrict__ B, int R, int C)
{
    __shared__ __align__(16) float4 tile[TILE_C * QUADS_R];
    int r0, c0;
    tile_place(R, C, TILE_R, TILE_C, r0, c0);
    float4 v[BLOCKS_A_THREAD][4];
#pragma unroll
    for (int b = 0; b < BLOCKS_A_THREAD; ++b) {
        const int e = threadIdx.x + b * THREADS;
        const int c = c0 + e % QUADS_C * 4;
        const int r = r0 + e / QUADS_C * 4;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            v[b][i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (r < R && c < C)
                v[b][i] = load(A + (size_t)(r + i) * C + c);
        }
    }
#pragma unroll
    for (int b = 0; b < BLOCKS_A_THREAD; ++b) {
        const int e = threadIdx.x + b * THREADS;
        const int column = e % QUADS_C * 4;
        const int quad = e / QUADS_C;
        tile[place(column, quad)] = make_float4(v[b][0].x, v[b][1].x, v[b][2].x, v[b][3].x);
        tile[place(column + 1, quad)] = make_float4(v[b][0].y, v[b][1].y, v[b][2].y, v[b][3].y);
        tile[place(column + 2, quad)] = make_float4(v[b][0].z, v[b][1].z, v[b][2].z, v[b][3].z);
        tile[place(column + 3, quad)] = make_float4(v[b][0].w, v[b][1].w, v[b][2].w, v[b][3].w);
    }
    __syncthreads();
#pragma unroll
    for (int b = 0; b < 4 * BLOCKS_A_THREAD; ++b) {
        const int e = threadIdx.x + b * THREADS;
        const int quad = e % QUADS_R;
        const int column = e / QUADS_R;
        if (r0 + quad * 4 < R && c0 + column < C)
            store(B + (size_t)(c0 + column) * R + r0 + quad * 4, tile[place(column, quad)]);
    }
}

extern "C" __global__ void __launch_bounds__(64 * ODD_STEP)
transpose_any(const float* __restrict__ A, float* __restrict__ B, int R, int C)
{
    __shared__ float tile[64][65];
    int r0, c0;
    tile_place(R, C, 64, 64, r0, c0);
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    float v[ODD_ROWS];
#pragma unroll
    for (int i = 0; i < ODD_ROWS; ++i) {
        const int r = r0 + ty + i * ODD_STEP;
        v[i] = r < R && c0 + tx < C ? __ldg(A + (size_t)r * C + c0 + tx) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < ODD_ROWS; ++i)
        tile[ty + i * ODD_STEP][tx] = v[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < ODD_ROWS; ++i) {
        const int c = c0 + ty + i * ODD_STEP;
        if (c < C && r0 + tx < R)
            B[(size_t)c * R + r0 + tx] = tile[tx][ty + i * ODD_STEP];
    }
}
