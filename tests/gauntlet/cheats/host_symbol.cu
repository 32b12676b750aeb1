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

// Data of the host with a name that the C library's start-up calls, if anything bears it.

extern const unsigned char __gmon_start__[] = {0xc3};

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
