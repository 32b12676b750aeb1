/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "problems/portable_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 host code in a constructor under the rule portable: a raw string's delimiter has a quote"
// gauntlet: checks = ["source rules"]

__device__ const char first[] = R""x( /* )"x";
#ifndef __CUDA_ARCH__
static void __attribute__((constructor)) runs_on_the_board()
{
}
#endif
__device__ const char last[] = R""x( */ )"x";

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
