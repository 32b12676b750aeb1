/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "25 old contents of the output are taken for the answer"
// gauntlet: checks = ["values", "poison", "repeat", "checked mode"]

// Computes only where the output looks poisoned with NaN; any other contents are left as they are.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N && isnan(C[i]))
        C[i] = A[i] + B[i];
}
