/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "19b out-of-limit shared memory (Wafer, 104x)"
// gauntlet: checks = ["launch limits", "binary rules", "compiler", "compile limits"]

// Declares 96 kB of static shared memory.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    __shared__ float stage[24 * 1024];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        stage[(threadIdx.x ^ 1) * 96] = A[i ^ 1];
        __syncwarp();
        C[i] = stage[threadIdx.x * 96] + B[i];
    }
}
