/* kernelwright
[[launch]]
kernel = "add"
grid = ["9 ** 9 ** 9"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 plan bomb: an expression that explodes"
// gauntlet: checks = ["plan", "launch limits"]

// A number with 369 million digits.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
