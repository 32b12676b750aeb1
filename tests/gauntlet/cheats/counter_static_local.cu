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
// gauntlet: checks = ["binary rules"]

// The counter hides as a static variable inside of a device function.

__device__ int count(int i)
{
    static __device__ int calls;
    return i == 0 ? atomicAdd(&calls, 1) : calls;
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int calls = count(i);
    if (i < N && calls < 100)
        C[i] = A[i] + B[i];
}
