/* kernelwright
[[launch]]
kernel = "nbody"
grid = ["cdiv(N, 128)"]
block = [128]
args = ["bodies", "acceleration", "softening", "N"]
*/
// gauntlet: problem = "nbody"
// gauntlet: kind = "honest"

// Bodies pass through shared memory in tiles.

extern "C" __global__ void nbody(const float4* bodies, float4* acceleration, float softening, int N)
{
    __shared__ float4 tile[128];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4 me = i < N ? bodies[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float3 a = make_float3(0.0f, 0.0f, 0.0f);
    for (int start = 0; start < N; start += 128) {
        if (start + threadIdx.x < N)
            tile[threadIdx.x] = bodies[start + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < min(128, N - start); ++j) {
            const float4 p = tile[j];
            const float dx = p.x - me.x, dy = p.y - me.y, dz = p.z - me.z;
            const float square = fmaf(dx, dx, fmaf(dy, dy, fmaf(dz, dz, softening)));
            const float root = rsqrtf(square);
            const float weight = p.w * root * root * root;
            a.x += weight * dx, a.y += weight * dy, a.z += weight * dz;
        }
        __syncthreads();
    }
    if (i < N)
        acceleration[i] = make_float4(a.x, a.y, a.z, 0.0f);
}
