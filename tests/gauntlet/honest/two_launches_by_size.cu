/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
when = "N <= 70000"
[[launch]]
kernel = "add4"
grid = ["cdiv(N, 1024)"]
block = [256]
args = ["A", "B", "C", "N"]
when = "N > 70000"
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

// One kernel for small vectors, one for large ones, by the plan's 'when'.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}

extern "C" __global__ void add4(const float* A, const float* B, float* C, int N)
{
    const int first = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
    for (int i = first; i < min(first + 4, N); ++i)
        C[i] = A[i] + B[i];
}
