/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
dynamic_shared_bytes = 300000
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "19b out-of-limit shared memory (Wafer, 104x)"
// gauntlet: checks = ["launch limits", "plan"]

// Asks for 300 kB of dynamic shared memory.

extern __shared__ float stage[];

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        stage[70000 + threadIdx.x] = A[i];
        C[i] = stage[70000 + threadIdx.x] + B[i];
    }
}
