/* kernelwright
[[launch]]
kernel = "add"
grid = [1]
block = [1]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "11 work that outlives the timing: a kernel launches kernels"
// gauntlet: checks = ["source rules", "binary rules", "compiler"]

// The work is left to a child kernel that may still run when the timing ends.

extern "C" __global__ void child(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    child<<<(N + 255) / 256, 256>>>(A, B, C, N);
}
