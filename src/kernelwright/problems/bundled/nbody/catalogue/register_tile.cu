/* kernelwright
[tune]
THREADS = [64, 128, 256]
BODIES = [1, 2, 4, 8]
TILE = [64, 128, 256]
UNROLL = [2, 4, 8]
WAVES = [2, 4, 8, 16]
[tune.compiler]
use_fast_math = [false, true]
[constraints]
registers = "BODIES * UNROLL <= 32"
[let]
blocks = "cdiv(N, THREADS * BODIES)"
parts = "max(1, min(cdiv(N, TILE), num_sms * WAVES // blocks))"
part = "cdiv(cdiv(N, TILE), parts) * TILE"
[scratch]
partial = { dtype = "float32", shape = ["4 * N * parts"] }
[[launch]]
kernel = "nbody_part"
when = "parts == 1"
grid = ["blocks"]
block = ["THREADS"]
args = ["bodies", "acceleration", "softening", "N", "part"]
[[launch]]
kernel = "nbody_part"
when = "parts > 1"
grid = ["blocks", "parts"]
block = ["THREADS"]
args = ["bodies", "partial", "softening", "N", "part"]
[[launch]]
kernel = "nbody_sum"
when = "parts > 1"
grid = ["cdiv(N, 128)"]
block = [128]
args = ["partial", "acceleration", "N", "parts"]
*/

// BODIES bodies a thread in registers against tiles in shared memory: a body read once from there is used BODIES
// times. The sum over the others is cut into parts until WAVES blocks a multiprocessor have work; a second launch
// adds the parts up.

extern "C" __global__ void __launch_bounds__(THREADS)
nbody_part(const float4* __restrict__ bodies, float4* __restrict__ sums, float softening, int N, int part)
{
    __shared__ float4 tile[TILE];
    const int first = blockIdx.x * (THREADS * BODIES) + threadIdx.x;
    const int begin = blockIdx.y * part;
    const int end = min(N, begin + part);
    float px[BODIES], py[BODIES], pz[BODIES], x[BODIES], y[BODIES], z[BODIES];
#pragma unroll
    for (int b = 0; b < BODIES; ++b) {
        const float4 me = bodies[min(first + b * THREADS, N - 1)];
        px[b] = me.x;
        py[b] = me.y;
        pz[b] = me.z;
        x[b] = y[b] = z[b] = 0.0f;
    }
    for (int start = begin; start < end; start += TILE) {
        for (int t = threadIdx.x; t < TILE; t += THREADS)
            tile[t] = start + t < end ? bodies[start + t] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
#pragma unroll 1
        for (int t = 0; t < TILE; t += UNROLL) {
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) {
                const float4 other = tile[t + u];
#pragma unroll
                for (int b = 0; b < BODIES; ++b) {
                    const float dx = other.x - px[b];
                    const float dy = other.y - py[b];
                    const float dz = other.z - pz[b];
                    const float inverse = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, softening))));
                    const float weight = other.w * inverse * inverse * inverse;
                    x[b] = fmaf(weight, dx, x[b]);
                    y[b] = fmaf(weight, dy, y[b]);
                    z[b] = fmaf(weight, dz, z[b]);
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int b = 0; b < BODIES; ++b)
        if (first + b * THREADS < N)
            sums[(size_t)blockIdx.y * N + first + b * THREADS] = make_float4(x[b], y[b], z[b], 0.0f);
}

extern "C" __global__ void __launch_bounds__(128)
nbody_sum(const float4* __restrict__ partial, float4* __restrict__ acceleration, int N, int parts)
{
    const int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= N)
        return;
    float4 sum = partial[i];
    for (int p = 1; p < parts; ++p) {
        const float4 v = partial[(size_t)p * N + i];
        sum.x += v.x;
        sum.y += v.y;
        sum.z += v.z;
    }
    acceleration[i] = sum;
}
