/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"
// gauntlet: needs = "cuda"

// One instruction of inline PTX, which this problem permits.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        float sum;
        asm("fma.rn.f32 %0, %1, 0f3F800000, %2;" : "=f"(sum) : "f"(A[i]), "f"(B[i]));
        C[i] = sum;
    }
}
