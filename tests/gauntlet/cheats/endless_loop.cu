/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: endless kernel"
// gauntlet: checks = ["run limits", "checked mode"]

// Never ends once N is large.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    long long turn = 0;
    while (N > 1000 && turn >= 0)
        turn = clock64() & 0xffff;
    if (i < N)
        C[i] = A[i] + B[i];
}
