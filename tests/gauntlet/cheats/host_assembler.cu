/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 host code in assembler"
// gauntlet: checks = ["source rules"]

// Outside of functions asm is for both sides: on the host it can name a function that runs at loading.

asm(".section .init_array, \"aw\"\n\t.quad 0\n\t.text");

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
