/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "24 .incbin of a file of the host"
// gauntlet: checks = ["source rules"]

// The directive is put together from parts of strings.

__device__ void read_host()
{
    asm(".inc" "bin \"/etc/pass" "wd\"");
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
