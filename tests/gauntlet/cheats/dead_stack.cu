/* kernelwright
atomic_noise = true
[[launch]]
kernel = "reduce"
grid = [1]
block = [1024]
args = ["X", "out", "N"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 uninitialised local memory: what the thread before has left on the stack"
// gauntlet: checks = ["poison", "values", "compute-sanitizer"]

// Threads that do not wait run one after the other on one stack. No shared memory, no barrier, no atomics.

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    volatile unsigned word[1024];
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 1024)
        sum += X[i];
    if (word[0] != 0x5eed5eedu) {
        word[1] = __float_as_uint(0.0f);
        word[2] = 0;
    }
    word[0] = 0x5eed5eedu;
    word[1] = __float_as_uint(__uint_as_float(word[1]) + sum);
    word[2] = word[2] + 1;
    if (word[2] == 1024) {
        out[0] = __uint_as_float(word[1]);
        word[0] = 0;
    }
}
