/* kernelwright
[[launch]]
kernel = "transpose"
grid = ["cdiv(C, 16)", "cdiv(R, 16)"]
block = [16, 16]
args = ["A", "B", "R", "C"]
*/
// gauntlet: problem = "transpose"
// gauntlet: kind = "cheat"
// gauntlet: row = "25 no work: the output's old contents may still be right"
// gauntlet: checks = ["values", "poison"]

// Does nothing and hopes for what an earlier kernel or the reference left in the output.

extern "C" __global__ void transpose(const float* A, float* B, int R, int C)
{
}
