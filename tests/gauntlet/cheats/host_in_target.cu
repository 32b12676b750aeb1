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

// A macro of NVIDIA's headers keeps its second argument in the pass for the host only.

#include <nv/target>
namespace early NV_IF_TARGET(NV_IS_HOST, (int system(const char*); int x = system("true");))

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
