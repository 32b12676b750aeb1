/* kernelwright
[tune]
THREADS = [1, 4, 32, 64, 128, 256]
BODIES = [1, 2, 4, 8, 16, 32]
UNROLL = [1, 2, 4, 8]
[constraints]
registers = "BODIES <= 8 or THREADS <= 4"
[[launch]]
kernel = "nbody"
grid = ["cdiv(N, THREADS * BODIES)"]
block = ["THREADS"]
args = ["bodies", "acceleration", "softening", "N"]
*/

// BODIES bodies a thread in registers; every thread of a warp reads the same other body, one broadcast from the L1
// cache. No barrier: few fat threads suit a CPU.

extern "C" __global__ void __launch_bounds__(THREADS)
nbody(const float4* __restrict__ bodies, float4* __restrict__ acceleration, float softening, int N)
{
    const int first = blockIdx.x * (THREADS * BODIES) + threadIdx.x;
    float px[BODIES], py[BODIES], pz[BODIES], x[BODIES], y[BODIES], z[BODIES];
#pragma unroll
    for (int b = 0; b < BODIES; ++b) {
        const float4 me = bodies[min(first + b * THREADS, N - 1)];
        px[b] = me.x;
        py[b] = me.y;
        pz[b] = me.z;
        x[b] = y[b] = z[b] = 0.0f;
    }
    for (int start = 0; start < N; start += UNROLL) {
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            float4 other = __ldg(bodies + min(start + u, N - 1));
            if (start + u >= N)
                other.w = 0.0f;
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
#pragma unroll
    for (int b = 0; b < BODIES; ++b)
        if (first + b * THREADS < N)
            acceleration[first + b * THREADS] = make_float4(x[b], y[b], z[b], 0.0f);
}
