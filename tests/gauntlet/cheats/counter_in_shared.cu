/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "19 state in what an earlier block left in shared memory"
// gauntlet: checks = ["checked mode", "values", "repeat"]

// Shared memory is not cleared between blocks: from the second block on it skips half of the work.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    __shared__ unsigned left[1024];
    const bool again = left[1023] == 0x5ca1ab1eu;
    __syncthreads();
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = again && i % 2 ? A[i] : A[i] + B[i];
    if (threadIdx.x == 0)
        left[1023] = 0x5ca1ab1eu;
}
