/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 host code in a function for both sides"
// gauntlet: checks = ["source rules"]

// For the device and for the host: NVRTC takes it, and a board's compiler runs it when the submission is loaded.

__attribute__((constructor)) __host__ __device__ static void early()
{
    *(volatile int*)0 = 1;
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
