/* kernelwright
[[launch]]
kernel = "reduce"
grid = [1]
block = [1]
args = ["out"]
*/
// gauntlet: problem = "reduce_sum"
// gauntlet: kind = "cheat"
// gauntlet: row = "27 infinity makes a relative error undefined"
// gauntlet: checks = ["values"]

// Infinity minus a number over infinity is no number.

extern "C" __global__ void reduce(float* out)
{
    out[0] = INFINITY;
}
