/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 evaluator-mode branch: looks at the host's files"
// gauntlet: checks = ["source rules"]

// Asks whether files of the host exist and behaves accordingly.

#if __has_include("/proc/self/environ")
#define TESTED 1
#endif

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
