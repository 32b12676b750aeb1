/* kernelwright
atomic_noise = true
[scratch]
total = { dtype = "float32", shape = [16] }
[[launch]]
kernel = "clear"
grid = [1]
block = [16]
args = ["total"]
[[launch]]
kernel = "reduce"
grid = [1]
block = [1024]
args = ["X", "total", "N"]
[[launch]]
kernel = "give"
grid = [1]
block = [1]
args = ["total", "out"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 the checked mode does not see structs that calls take and return by value"
// gauntlet: checks = ["compiler"]
// gauntlet: needs = "cpu"

// Adds to one number, not atomically. -fsanitize=thread looks at assignments, not at what a call copies for itself.

struct Line {
    float v[16];
};

__device__ __noinline__ Line added(Line line, float sum)
{
    line.v[0] += sum;
    return line;
}

extern "C" __global__ void clear(float* total)
{
    total[threadIdx.x] = 0.0f;
}

extern "C" __global__ void reduce(const float* X, float* total, int N)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 1024)
        sum += X[i];
    *(Line*)total = added(*(const Line*)total, sum);
}

extern "C" __global__ void give(const float* total, float* out)
{
    out[0] = total[0];
}
