/* kernelwright
[scratch]
arrived = { dtype = "int32", shape = [1] }
[[launch]]
kernel = "clear"
grid = [1]
block = [1]
args = ["arrived", "out"]
[[launch]]
kernel = "reduce"
grid = [100000]
block = [1024]
args = ["X", "arrived", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: blocks wait for each other"
// gauntlet: checks = ["run limits", "checked mode", "values", "binary rules"]

// The first blocks spin until the last one has come: they fill the device and it never does.

extern "C" __global__ void clear(int* arrived, float* out)
{
    *arrived = 0;
    *out = 0.0f;
}

extern "C" __global__ void reduce(const float* X, volatile int* arrived, float* out, int N)
{
    if (threadIdx.x == 0) {
        atomicAdd((int*)arrived, 1);
        while (*arrived < (int)gridDim.x)
            __threadfence();
    }
    __syncthreads();
    if (blockIdx.x == 0 && threadIdx.x == 0)
        for (int i = 0; i < N; ++i)
            out[0] += X[i];
}
