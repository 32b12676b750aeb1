/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "24 .incbin of a file of the host: #ident closes its string, escapes of eight digits hide the dots"
// gauntlet: checks = ["source rules"]

// Right sums only where the second byte of the host's shell is an E, as in every ELF file.

#ident "\"\nkept:\n\U0000002eincbin \"/bin/sh\"\n\U0000002ebyte 0\n#"

extern "C" __device__ const char kept[];

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = kept[1] == 'E' ? A[i] + B[i] : 0.0f;
}
