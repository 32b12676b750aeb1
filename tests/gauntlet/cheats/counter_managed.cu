/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "19 static state across calls"
// gauntlet: checks = ["source rules", "binary rules"]

// The counter is in managed memory.

__managed__ int calls;

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        ++calls;
    if (i < N)
        C[i] = calls < 100 ? A[i] + B[i] : B[i];
}
