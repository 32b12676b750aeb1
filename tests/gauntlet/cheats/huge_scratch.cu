/* kernelwright
[scratch]
hoard = { dtype = "float64", shape = ["2 ** 40"] }
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: more memory than there is"
// gauntlet: checks = ["launch limits", "plan", "run limits"]

// Asks for eight terabytes of scratch.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
