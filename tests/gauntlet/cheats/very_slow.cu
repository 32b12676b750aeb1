/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: very slow kernel"
// gauntlet: checks = ["run limits", "checked mode"]

// Right after some hours.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float unused = 1.0f;
    for (long long turn = 0; turn < 200000000000ll; ++turn)
        unused = unused * 0.999f + 0.001f;
    if (i < N)
        C[i] = A[i] + B[i] + (unused > 2.0f ? 1.0f : 0.0f);
}
