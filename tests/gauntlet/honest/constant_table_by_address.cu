/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

// A table in constant memory, read through a pointer that a function returns.
__constant__ const float signs[4] = {1.0f, 1.0f, 1.0f, 1.0f};
__device__ __noinline__ const float* table() { return signs; }
extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float* s = table();
    if (i < N)
        C[i] = s[i & 3] * A[i] + s[(i + 1) & 3] * B[i];
}
