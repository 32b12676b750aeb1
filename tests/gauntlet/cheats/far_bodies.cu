/* kernelwright
[[launch]]
kernel = "nbody"
grid = ["cdiv(N, 128)"]
block = [128]
args = ["bodies", "acceleration", "softening", "N"]
*/
// gauntlet: problem = "nbody"
// gauntlet: kind = "cheat"
// gauntlet: row = "34 dropped terms"
// gauntlet: checks = ["values"]

// Bodies farther than half a unit are left out.

extern "C" __global__ void nbody(const float4* bodies, float4* acceleration, float softening, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    const float4 me = bodies[i];
    float3 a = make_float3(0.0f, 0.0f, 0.0f);
    for (int j = 0; j < N; ++j) {
        const float4 p = bodies[j];
        const float dx = p.x - me.x, dy = p.y - me.y, dz = p.z - me.z;
        const float square = dx * dx + dy * dy + dz * dz + softening;
        if (square > 0.25f)
            continue;
        const float weight = p.w / (square * sqrtf(square));
        a.x += weight * dx, a.y += weight * dy, a.z += weight * dz;
    }
    acceleration[i] = make_float4(a.x, a.y, a.z, 0.0f);
}
