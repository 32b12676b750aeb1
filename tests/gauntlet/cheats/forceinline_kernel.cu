/* kernelwright
atomic_noise = true
[[launch]]
kernel = "clear"
grid = [1]
block = [1]
args = ["out"]
[[launch]]
kernel = "reduce"
grid = [1]
block = [1024]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 the checked mode does not see a kernel that is inlined into its entry, which is not watched"
// gauntlet: checks = ["checked mode"]
// gauntlet: needs = "cpu"

// All threads of a block add to one number, none atomically: on the cpu device a thread is never interrupted.

extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

extern "C" __global__ __forceinline__ void reduce(const float* X, float* out, int N)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 1024)
        sum += X[i];
    out[0] += sum;
}
