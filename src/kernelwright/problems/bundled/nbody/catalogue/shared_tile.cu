/* kernelwright
[tune]
THREADS = [32, 64, 128, 256, 512]
UNROLL = [1, 4, 8, 16, 32]
[tune.compiler]
use_fast_math = [false, true]
[[launch]]
kernel = "nbody"
grid = ["cdiv(N, THREADS)"]
block = ["THREADS"]
args = ["bodies", "acceleration", "softening", "N"]
*/

// One thread a body, the others a tile of THREADS at a time through shared memory (Nyland, Harris and Prins, GPU Gems
// 3, 2007). Places past N have no mass.

template <int COUNT>
__device__ __forceinline__ void attract(const float4* others, float4 me, float softening, float& x, float& y, float& z)
{
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
        const float4 other = others[u];
        const float dx = other.x - me.x;
        const float dy = other.y - me.y;
        const float dz = other.z - me.z;
        const float inverse = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, softening))));
        const float weight = other.w * inverse * inverse * inverse;
        x = fmaf(weight, dx, x);
        y = fmaf(weight, dy, y);
        z = fmaf(weight, dz, z);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
nbody(const float4* __restrict__ bodies, float4* __restrict__ acceleration, float softening, int N)
{
    __shared__ float4 tile[THREADS];
    const int i = blockIdx.x * THREADS + threadIdx.x;
    const float4 me = bodies[min(i, N - 1)];
    float x = 0.0f;
    float y = 0.0f;
    float z = 0.0f;
    for (int start = 0; start < N; start += THREADS) {
        const int j = start + threadIdx.x;
        tile[threadIdx.x] = j < N ? bodies[j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
        for (int u = 0; u < THREADS; u += UNROLL)
            attract<UNROLL>(tile + u, me, softening, x, y, z);
        __syncthreads();
    }
    if (i < N)
        acceleration[i] = make_float4(x, y, z, 0.0f);
}
