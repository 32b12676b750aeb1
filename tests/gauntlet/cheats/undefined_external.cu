/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 calls into the host"
// gauntlet: checks = ["binary rules", "compiler", "source rules"]

// Declares a function that is to be found elsewhere.

extern "C" __device__ int system(const char*);

__device__ int run()
{
    return system("id");
}

extern "C" __global__ void other(int* out)
{
    *out = run();
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
