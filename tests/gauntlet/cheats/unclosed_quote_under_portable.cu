/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "problems/portable_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 code for the host alone under the rule portable, behind a quote that is not closed"
// gauntlet: checks = ["source rules"]

#if 0
' /*
#endif
#ifndef __CUDA_ARCH__
__attribute__((constructor)) void runs_on_the_board()
{
}
#endif
#if 0
' */
#endif

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
