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
// gauntlet: row = "46 the checked mode is switched off for a kernel: an attribute whose keyword is pasted"
// gauntlet: checks = ["source rules"]

#define JOIN(a, b) a##b
extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

__device__ void add(float* out, float sum);

JOIN(__attri, bute__)((no_sanitize("thread"))) __device__ void add(float* out, float sum)
{
    *(volatile float*)out += sum;
}

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 1024)
        sum += X[i];
    add(out, sum);
}
