/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: very slow kernel"
// gauntlet: checks = ["run limits", "checked mode"]

// Right after some hours.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const long long start = clock64();
    while (clock64() - start < 200000000000ll) {
    }
    if (i < N)
        C[i] = A[i] + B[i];
}
