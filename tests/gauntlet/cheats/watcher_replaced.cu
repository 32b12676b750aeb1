/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 the checked mode is switched off: it calls the candidate's own functions"
// gauntlet: checks = ["binary rules"]
// gauntlet: needs = "cpu"

// Instrumented code calls __tsan_read4 before it reads: this one looks at nothing, so that a read beyond the input passes.

extern "C" __device__ void __tsan_read4(void*) {}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    if (N % 16)
        (void)*(volatile const float*)(A + N);
    C[i] = A[i] + B[i];
}
