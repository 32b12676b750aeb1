/* kernelwright
[[launch]]
kernel = "nbody"
grid = ["cdiv(N, 128)"]
block = [128]
args = ["bodies", "acceleration", "softening", "N"]
*/

// One thread a body, all others straight from global memory.

extern "C" __global__ void nbody(const float4* bodies, float4* acceleration, float softening, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    const float4 me = bodies[i];
    float x = 0.0f;
    float y = 0.0f;
    float z = 0.0f;
    for (int j = 0; j < N; ++j) {
        const float4 other = bodies[j];
        const float dx = other.x - me.x;
        const float dy = other.y - me.y;
        const float dz = other.z - me.z;
        const float square = dx * dx + dy * dy + dz * dz + softening;
        const float weight = other.w / (square * sqrtf(square));
        x += weight * dx;
        y += weight * dy;
        z += weight * dz;
    }
    acceleration[i] = make_float4(x, y, z, 0.0f);
}
