/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "36 misaligned vector accesses"
// gauntlet: checks = ["checked mode", "crash", "guard bands"]

// Reads float4 from the second element on.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) {
        const float4 a = *(const float4*)(A + 1);
        C[1] = a.x + B[1];
    } else if (i < N && i != 1)
        C[i] = A[i] + B[i];
    if (i == 0)
        C[0] = A[0] + B[0];
}
