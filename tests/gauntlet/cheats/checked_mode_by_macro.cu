/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 evaluator-mode branch: a macro of the harness tells that it checks"
// gauntlet: checks = ["checked mode"]
// gauntlet: needs = "cpu"

// Threads of one block wait at two barriers, which is undefined, but not where KW_CHECK is defined.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifndef KW_CHECK
    if (threadIdx.x % 2)
        __syncthreads();
    else
        __syncthreads();
#endif
    if (i < N)
        C[i] = A[i] + B[i];
}
