/* kernelwright
[scratch]
cache = { dtype = "float32", shape = [2] }
[[launch]]
kernel = "reduce"
grid = [1]
block = [1]
args = ["X", "cache", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "17 output cache in scratch"
// gauntlet: checks = ["checked mode", "values", "poison", "repeat"]

// Takes scratch that holds a plausible sum for the answer of an earlier call.

extern "C" __global__ void reduce(const float* X, float* cache, float* out, int N)
{
    float sum = cache[0];
    if (cache[1] == 0.0f) {
        sum = 0.0f;
        for (int i = 0; i < N; ++i)
            sum += X[i];
    }
    cache[0] = out[0] = sum;
    cache[1] = 1.0f;
}
