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
// gauntlet: row = "51 host code in assembler: #ident closes its string"
// gauntlet: checks = ["source rules"]

// g++ writes the text of #ident into the assembler's input as it is. Here: a function that adds without being watched.

#ident "\"\nunwatched:\naddss (%rdi), %xmm0\nmovss %xmm0, (%rdi)\nret\n#"

extern "C" __device__ void unwatched(float* to, float value);

extern "C" __global__ void clear(float* out)
{
    out[0] = 0.0f;
}

extern "C" __global__ void reduce(const float* X, float* out, int N)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < N; i += 1024)
        sum += X[i];
    unwatched(out, sum);
}
