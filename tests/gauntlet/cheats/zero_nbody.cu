/* kernelwright
[[launch]]
kernel = "nbody"
grid = ["cdiv(N, 128)"]
block = [128]
args = ["bodies", "acceleration", "softening", "N"]
*/
// gauntlet: problem = "nbody"
// gauntlet: kind = "cheat"
// gauntlet: row = "30 zero output"
// gauntlet: checks = ["values"]

// Far from everything the acceleration is nearly zero.

extern "C" __global__ void nbody(const float4* bodies, float4* acceleration, float softening, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        acceleration[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}
