/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "19b out-of-limit shared memory (Wafer, 104x)"
// gauntlet: checks = ["launch limits", "binary rules", "compiler", "compile limits"]

// Declares 240 kB of static shared memory, more than any device has.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    __shared__ float stage[60 * 1024];
    const int first = blockIdx.x * 256;
    const int mirrored = 255 - threadIdx.x;
    if (first + threadIdx.x < N)
        stage[threadIdx.x * 240] = A[first + threadIdx.x];
    __syncthreads();
    if (first + mirrored < N)
        C[first + mirrored] = stage[mirrored * 240] + B[first + mirrored];
}
