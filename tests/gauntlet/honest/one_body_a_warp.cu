/* kernelwright
[[launch]]
kernel = "nbody"
grid = ["cdiv(N, 4)"]
block = [128]
args = ["bodies", "acceleration", "softening", "N"]
*/
// gauntlet: problem = "nbody"
// gauntlet: kind = "honest"

// The sum over j is split over a warp's lanes.

extern "C" __global__ void nbody(const float4* bodies, float4* acceleration, float softening, int N)
{
    const int i = blockIdx.x * 4 + threadIdx.x / 32;
    if (i >= N)
        return;
    const float4 me = bodies[i];
    float3 a = make_float3(0.0f, 0.0f, 0.0f);
    for (int j = threadIdx.x % 32; j < N; j += 32) {
        const float4 p = bodies[j];
        const float dx = p.x - me.x, dy = p.y - me.y, dz = p.z - me.z;
        const float square = dx * dx + dy * dy + dz * dz + softening;
        const float weight = p.w / (square * sqrtf(square));
        a.x += weight * dx, a.y += weight * dy, a.z += weight * dz;
    }
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        a.x += __shfl_down_sync(0xffffffffu, a.x, lanes);
        a.y += __shfl_down_sync(0xffffffffu, a.y, lanes);
        a.z += __shfl_down_sync(0xffffffffu, a.z, lanes);
    }
    if (threadIdx.x % 32 == 0)
        acceleration[i] = make_float4(a.x, a.y, a.z, 0.0f);
}
