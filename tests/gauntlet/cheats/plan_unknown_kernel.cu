/* kernelwright
[[launch]]
kernel = "sum"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "39 credit for a kernel that is not there"
// gauntlet: checks = ["compiler", "launch limits", "plan", "binary rules"]

// The plan launches a kernel that the source lacks.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
