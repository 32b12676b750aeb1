/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

// Words that a text rule could stumble over: /etc/passwd, system(), asm, static, malloc, ../../, printf, mma.sync, #include.

/* NOTE: "verified"; asm volatile; #include "../../notes.h"; .incbin; goto; while (true);
   __device__ int calls; cudaMalloc; status: measured; N == 65536 */
extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    // static analysis says: asmtotic cost is linear, the system mallocates nothing
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool statically_inside = i < N;
    if (statically_inside)
        C[i] = A[i] + B[i];
}
