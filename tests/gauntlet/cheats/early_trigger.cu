/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "11 work that outlives the timing: programmatic dependent launch"
// gauntlet: checks = ["source rules", "binary rules"]
// gauntlet: needs = "cuda"

// Lets the next kernel start before this one is done.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    asm volatile("griddepcontrol.launch_dependents;");
    if (i < N)
        C[i] = A[i] + B[i];
}
