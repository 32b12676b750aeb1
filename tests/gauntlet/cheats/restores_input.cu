/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "28 mutates its input and puts it back, nearly"
// gauntlet: checks = ["checked mode", "inputs unchanged"]

// Uses the input as working memory and subtracts again what it added: rounded.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float* a = (float*)A;
    if (i < N) {
        a[i] += B[i];
        C[i] = a[i];
        a[i] -= B[i];
    }
}
