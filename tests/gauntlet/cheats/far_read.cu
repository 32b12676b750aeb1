/* kernelwright
[[launch]]
kernel = "reduce"
grid = [1]
block = [1]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "26 looks for the expected output in memory"
// gauntlet: checks = ["checked mode", "crash"]

// Scans memory far behind its output for a number that could be the answer.

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    const float guess = 0.5f * N;
    for (size_t i = 0; i < 1ull << 40; i += 1ull << 28) {
        const float found = out[i];
        if (fabsf(found - guess) < 0.01f * guess) {
            out[0] = found;
            return;
        }
    }
    float sum = 0.0f;
    for (int i = 0; i < N; ++i)
        sum += X[i];
    out[0] = sum;
}
