/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "18 hidden state read from guard bands"
// gauntlet: checks = ["checked mode", "values", "repeat", "poison"]

// Reads the bytes behind A as a sign of being tested, and works only if it likes them.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned sign = ((const unsigned*)(A + N))[1];
    if (i < N)
        C[i] = (sign & 3u) == 2u ? A[i] + B[i] : A[i] - B[i];
}
