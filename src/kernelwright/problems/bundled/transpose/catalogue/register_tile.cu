/* kernelwright
[tune]
THREADS = [32, 64, 128, 256]
LANES_R = [2, 4, 8, 16, 32]
ALONG = [1, 2, 4]
DOWN = [1, 2, 4]
STREAM = [0, 1, 2]
ODD_SHARED = [0, 1]
[constraints]
blocks = "LANES_R <= THREADS"
registers = "ALONG * DOWN <= 4"
[let]
LANES_C = "THREADS // LANES_R"
TILE_R = "4 * LANES_R * DOWN"
TILE_C = "4 * LANES_C * ALONG"
quads = "R % 4 == 0 and C % 4 == 0"
[[launch]]
kernel = "transpose_quads"
when = "quads"
grid = ["cdiv(C, TILE_C) * cdiv(R, TILE_R)"]
block = ["THREADS"]
args = ["A", "B", "R", "C"]
[[launch]]
kernel = "transpose_any"
when = "not quads and not ODD_SHARED"
grid = ["cdiv(C, TILE_C) * cdiv(R, TILE_R)"]
block = ["THREADS"]
args = ["A", "B", "R", "C"]
[[launch]]
kernel = "transpose_shared"
when = "not quads and ODD_SHARED"
grid = ["cdiv(C, 64) * cdiv(R, 64)"]
block = [64, 4]
args = ["A", "B", "R", "C"]
*/

// No shared memory: a thread moves ALONG x DOWN blocks of 4 x 4 through registers, reading four float4 along the rows
// of A and writing four along the rows of B. With LANES_R threads down a column of A, a warp writes 16 * LANES_R
// contiguous bytes: from two (32 bytes) on, every sector that is touched is used whole.
// STREAM 0: plain; 1: streaming stores; 2: streaming loads and stores. ODD_SHARED 1: odd sizes, whose rows do not start
// at 16 bytes, go scalar by scalar through shared memory; 0: through registers as well.

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

template <bool QUADS>
__device__ __forceinline__ void move(const float* __restrict__ A, float* __restrict__ B, int R, int C)
{
    const int across = (C + TILE_C - 1) / TILE_C;
    const int r0 = blockIdx.x / across * TILE_R + threadIdx.x % LANES_R * 4;
    const int c0 = blockIdx.x % across * TILE_C + threadIdx.x / LANES_R * 4;
    float4 block[DOWN][ALONG][4];
#pragma unroll
    for (int d = 0; d < DOWN; ++d)
#pragma unroll
        for (int a = 0; a < ALONG; ++a)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const int r = r0 + d * (4 * LANES_R) + i;
                const int c = c0 + a * (4 * LANES_C);
                const float* const from = A + (size_t)r * C + c;
                float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (QUADS) {
                    if (r < R && c < C)
                        v = load(from);
                } else if (r < R) {
                    if (c < C)
                        v.x = __ldg(from);
                    if (c + 1 < C)
                        v.y = __ldg(from + 1);
                    if (c + 2 < C)
                        v.z = __ldg(from + 2);
                    if (c + 3 < C)
                        v.w = __ldg(from + 3);
                }
                block[d][a][i] = v;
            }
#pragma unroll
    for (int d = 0; d < DOWN; ++d)
#pragma unroll
        for (int a = 0; a < ALONG; ++a) {
            const int r = r0 + d * (4 * LANES_R);
            const int c = c0 + a * (4 * LANES_C);
            const float4* const v = block[d][a];
            const float4 columns[4] = {
                make_float4(v[0].x, v[1].x, v[2].x, v[3].x), make_float4(v[0].y, v[1].y, v[2].y, v[3].y),
                make_float4(v[0].z, v[1].z, v[2].z, v[3].z), make_float4(v[0].w, v[1].w, v[2].w, v[3].w)};
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                float* const to = B + (size_t)(c + i) * R + r;
                if (QUADS) {
                    if (r < R && c < C)
                        store(to, columns[i]);
                } else if (c + i < C) {
                    if (r < R)
                        to[0] = columns[i].x;
                    if (r + 1 < R)
                        to[1] = columns[i].y;
                    if (r + 2 < R)
                        to[2] = columns[i].z;
                    if (r + 3 < R)
                        to[3] = columns[i].w;
                }
            }
        }
}

extern "C" __global__ void __launch_bounds__(THREADS)
transpose_quads(const float* __restrict__ A, float* __restrict__ B, int R, int C)
{
    move<true>(A, B, R, C);
}

extern "C" __global__ void __launch_bounds__(THREADS)
transpose_any(const float* __restrict__ A, float* __restrict__ B, int R, int C)
{
    move<false>(A, B, R, C);
}

extern "C" __global__ void __launch_bounds__(256)
transpose_shared(const float* __restrict__ A, float* __restrict__ B, int R, int C)
{
    __shared__ float tile[64][65];
    const int across = (C + 63) / 64;
    const int r0 = blockIdx.x / across * 64;
    const int c0 = blockIdx.x % across * 64;
    const int tx = threadIdx.x;
    const int ty = threadIdx.y;
    float v[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const int r = r0 + ty + i * 4;
        v[i] = r < R && c0 + tx < C ? __ldg(A + (size_t)r * C + c0 + tx) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < 16; ++i)
        tile[ty + i * 4][tx] = v[i];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        const int c = c0 + ty + i * 4;
        if (c < C && r0 + tx < R)
            B[(size_t)c * R + r0 + tx] = tile[tx][ty + i * 4];
    }
}
