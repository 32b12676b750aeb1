/* kernelwright
[[launch]]
kernel = "reduce"
grid = [1]
block = [256]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 race, hidden where races are looked for"
// gauntlet: checks = ["checked mode"]
// gauntlet: needs = "cpu"

// All threads store the result, each behind another value: right only where a thread runs to its end, as on the cpu. With
// KW_CHECK defined one thread stores it.

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    __shared__ float tree[256];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 256)
        sum += X[i];
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half /= 2) {
        if (threadIdx.x < half)
            tree[threadIdx.x] += tree[threadIdx.x + half];
        __syncthreads();
    }
#ifdef KW_CHECK
    if (threadIdx.x == 0)
#endif
    {
        *(volatile float*)out = (float)threadIdx.x;
        *(volatile float*)out = tree[0];
    }
}
