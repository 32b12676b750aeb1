/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "problems/portable_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 host code that runs at load under the rule portable: #ident"
// gauntlet: checks = ["source rules"]

// nvcc hands #ident to the host's g++, which writes its text into the assembler's input as it is.

#ident "\"\nhost_code:\nret\n\U0000002esection \U0000002einit_array,\U00000022aw\U00000022\n\U0000002equad host_code\n\U0000002etext\n#"

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
