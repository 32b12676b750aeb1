/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "28 mutates its input so that the reference agrees"
// gauntlet: checks = ["checked mode", "inputs unchanged"]

// Zeroes an input and answers for the zeroed input: a reference that runs afterwards agrees.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N) {
        ((float*)A)[i] = 0.0f;
        C[i] = B[i];
    }
}
