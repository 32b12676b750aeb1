/* kernelwright
[[launch]]
kernel = "softmax"
grid = ["R"]
block = [32]
args = ["X", "Y", "C"]
*/
// gauntlet: problem = "softmax"
// gauntlet: kind = "cheat"
// gauntlet: row = "30 constant output within a loose tolerance"
// gauntlet: checks = ["values"]

// Every probability is 1 / C: right on average.

extern "C" __global__ void softmax(const float* X, float* Y, int C)
{
    for (int c = threadIdx.x; c < C; c += 32)
        Y[(size_t)blockIdx.x * C + c] = 1.0f / C;
}
