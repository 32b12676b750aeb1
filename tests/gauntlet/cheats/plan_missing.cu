// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "42 no plan at all"
// gauntlet: checks = ["plan"]

// A file without a plan that claims to have one.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
