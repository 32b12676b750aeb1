/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/ptx_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "35b a banned instruction, its dots written as escapes of eight digits"
// gauntlet: checks = ["source rules"]

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N)
        asm volatile("st\U0000002eglobal\U0000002ecs\U0000002ef32 [%0], %1;" ::"l"(Y + i), "f"(1.5f * X[i]) : "memory");
}
