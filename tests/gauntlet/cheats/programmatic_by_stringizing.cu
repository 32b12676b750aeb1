/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "11 programmatic launch, its PTX made by stringizing"
// gauntlet: checks = ["source rules"]
// gauntlet: needs = "cuda"

#define TEXT(x) #x
#define BOTH(a, b) TEXT(a##b.launch_dependents;)
extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile(BOTH(griddep, control));
    if (i < N)
        C[i] = A[i] + B[i];
}
