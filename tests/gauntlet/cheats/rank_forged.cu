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
// gauntlet: row = "46 the checked mode takes a thread's rank from where the thread can write it"
// gauntlet: checks = ["checked mode"]
// gauntlet: needs = "cpu"

// Behind threadIdx, blockIdx, blockDim and gridDim stands the rank. While all threads say that they are thread 0, none races.

extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 1024)
        sum += X[i];
    volatile unsigned* rank = (volatile unsigned*)&threadIdx + 12;
    const unsigned mine = *rank;
    *rank = 0;
    *(volatile float*)out += sum;
    *rank = mine;
}
