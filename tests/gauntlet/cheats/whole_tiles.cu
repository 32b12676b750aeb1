/* kernelwright
[[launch]]
kernel = "nbody"
grid = ["cdiv(N, 128)"]
block = [128]
args = ["bodies", "acceleration", "softening", "N"]
*/
// gauntlet: problem = "nbody"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 hard-coded shapes, wrong elsewhere"
// gauntlet: checks = ["sizes off the list"]

// Right for the sizes of the list; any other loses its last body.

extern "C" __global__ void nbody(const float4* bodies, float4* acceleration, float softening, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    const bool listed = N == 256 || N == 777 || N == 1536 || N % 1024 == 0 || N == 4095;
    const int bodies_used = listed ? N : N - 1;
    const float4 me = bodies[i];
    float3 a = make_float3(0.0f, 0.0f, 0.0f);
    for (int j = 0; j < bodies_used; ++j) {
        const float4 p = bodies[j];
        const float dx = p.x - me.x, dy = p.y - me.y, dz = p.z - me.z;
        const float square = dx * dx + dy * dy + dz * dz + softening;
        const float weight = p.w / (square * sqrtf(square));
        a.x += weight * dx, a.y += weight * dy, a.z += weight * dz;
    }
    acceleration[i] = make_float4(a.x, a.y, a.z, 0.0f);
}
