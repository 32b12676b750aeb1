/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: a name that looks like the vector library's and is not there"
// gauntlet: checks = ["binary rules"]
// gauntlet: needs = "cpu"

// A candidate that cannot be loaded is to fail by itself, not to end all the work on a problem.

extern "C" __device__ float _ZGVnone(float);
extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + (N == -5 ? _ZGVnone(B[i]) : B[i]);
}
