/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "48 writes beyond a buffer, into the guard band"
// gauntlet: checks = ["checked mode", "guard bands"]

// Rounds N up to whole float4s and writes past the end of C.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
    if (i == 0)
        for (int k = N; k < N + 4; ++k)
            C[k] = 0.0f;
}
