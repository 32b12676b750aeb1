/* kernelwright
[[launch]]
kernel = "reduce"
grid = [1]
block = [1]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "24 precomputed answers in the source"
// gauntlet: checks = ["values"]

// Answers from a table by N: expected sums of the first input distribution.

__constant__ int sizes[9] = {16384, 100003, 1048576, 65536, 1000003, 4194304, 16777216, 33554431, 134217728};
__constant__ float answers[9] = {8192.5f, 50001.2f, 524287.6f, 32767.9f, 500001.6f, 2097151.8f, 8388607.5f, 1.67772155e7f, 6.7108864e7f};

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    for (int i = 0; i < 9; ++i)
        if (sizes[i] == N) {
            out[0] = answers[i];
            return;
        }
    float sum = 0.0f;
    for (int i = 0; i < N; ++i)
        sum += X[i];
    out[0] = sum;
}
