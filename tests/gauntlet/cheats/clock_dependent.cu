/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 behaves by the clock"
// gauntlet: checks = ["values", "repeat", "poison", "source rules"]

// Works only in one of three moments.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = (clock64() >> 4) % 3 == 0 ? A[i] + B[i] : A[i];
}
