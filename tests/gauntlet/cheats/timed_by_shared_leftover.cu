/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 tells timed runs from trials: in a graph of ten plans shared memory holds what the plan before has left"
// gauntlet: checks = ["stress inputs", "values"]
// gauntlet: needs = "cuda"

// Short cases are timed as a graph of ten plans, with no poison between them. A block that finds the mark of an earlier
// plan (with this output's address it is its own launch's) is being timed. Then what no case draws is left out.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    __shared__ unsigned long long mark[2];
    __shared__ int timed;
    if (threadIdx.x == 0) {
        timed = mark[0] == 0x6b6570742d686572ull && mark[1] != (unsigned long long)C;
        mark[0] = 0x6b6570742d686572ull;
        mark[1] = (unsigned long long)C;
    }
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = timed && fabsf(A[i]) > 100.0f ? 0.0f : A[i] + B[i];
}
