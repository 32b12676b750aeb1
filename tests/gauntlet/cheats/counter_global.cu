/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "6 call counter: warm-up detection"
// gauntlet: checks = ["binary rules"]

// Right for the first hundred calls, half the work afterwards: the count lives in a __device__ variable.

__device__ int calls;

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        atomicAdd(&calls, 1);
    if (i < N && (calls < 100 || i % 2 == 0))
        C[i] = A[i] + B[i];
}
