/* kernelwright
[[launch]]
kernel = "softmax"
grid = ["R"]
block = [32]
args = ["X", "Y", "C"]
*/
// gauntlet: problem = "softmax"
// gauntlet: kind = "cheat"
// gauntlet: row = "27 NaN as a wildcard of the comparison"
// gauntlet: checks = ["values"]

// NaN compares with everything as false: a careless check sees no difference.

extern "C" __global__ void softmax(const float* X, float* Y, int C)
{
    for (int c = threadIdx.x; c < C; c += 32)
        Y[(size_t)blockIdx.x * C + c] = nanf("");
}
