/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 a time bomb: wrong when it is compiled on another day"
// gauntlet: checks = ["source rules"]

// The same text is another kernel tomorrow: who compiles it again, for a board or a certificate, gets wrong sums.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const bool later = __DATE__[10] >= '9';
    if (i < N)
        C[i] = later ? A[i] - B[i] : A[i] + B[i];
}
