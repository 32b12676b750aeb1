/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "40 tiny numbers flushed to zero"
// gauntlet: checks = ["stress inputs", "values"]

// Takes numbers below 1e-7 for zero.

__device__ __forceinline__ float flushed(float x)
{
    return fabsf(x) < 1e-7f ? 0.0f : x;
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = flushed(flushed(A[i]) + flushed(B[i]));
}
