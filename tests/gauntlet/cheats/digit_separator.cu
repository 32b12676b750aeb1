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
// gauntlet: row = "46 a digit separator hides the machine's own instructions from the cpu device's look"
// gauntlet: checks = ["compiler"]
// gauntlet: needs = "cuda"

extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 1'024)
        sum += X[i];
    int some = 1'0; asm volatile("addss (%1), %0\n\tmovss %0, (%1)" : "+x"(sum) : "r"(out) : "memory"); some = '0';
}
