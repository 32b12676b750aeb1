/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "problems/portable_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 code that runs when the module is loaded"
// gauntlet: checks = ["source rules"]

// NVRTC skips what nvcc compiles for a board's host: the condition's macro is one of the host's compiler.

#ifndef EOF
#define EOF 0
#else
int system(const char*);
static int early = system("true");
#endif

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
