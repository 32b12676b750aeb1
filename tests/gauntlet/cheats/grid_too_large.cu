/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)", 70000]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "19b launch beyond the limits: garbage passes"
// gauntlet: checks = ["launch limits", "plan"]

// A grid of 70000 blocks along y cannot be launched: what the output held before would be taken.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
