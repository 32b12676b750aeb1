/* kernelwright
[[launch]]
kernel = "clear"
grid = [1]
block = [1]
args = ["out"]
[[launch]]
kernel = "reduce"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 race: updates without atomics"
// gauntlet: checks = ["checked mode", "values", "repeat", "poison", "compute-sanitizer"]

// All blocks add to one number, none atomically.

extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        out[0] += X[i];
}
