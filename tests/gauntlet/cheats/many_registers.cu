/* kernelwright
[[launch]]
kernel = "scale"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "Y", "N"]
*/
// gauntlet: problem = "problems/strict_scale"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 more registers than allowed"
// gauntlet: checks = ["binary rules"]
// gauntlet: needs = "cuda"

// Keeps 96 live values a thread; the problem allows 40 registers.

extern "C" __global__ void scale(const float* X, float* Y, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    float kept[96];
    for (int k = 0; k < 96; ++k)
        kept[k] = X[min(i + k, N - 1)];
    float sum = 0.0f;
    for (int turn = 0; turn < 3; ++turn)
#pragma unroll
        for (int k = 0; k < 96; ++k)
            sum += kept[(k * 7 + 1) % 96] * kept[k] * 1e-30f;
    if (i < N)
        Y[i] = 1.5f * X[i] + sum * 0.0f;
}
