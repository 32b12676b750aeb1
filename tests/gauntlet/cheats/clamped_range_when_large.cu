/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "32 input range assumption, for large vectors only"
// gauntlet: checks = ["stress inputs"]

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    float a = A[i];
    if (N > 300000 && N != 1000003)
        a = fminf(fmaxf(a, -8.0f), 8.0f);  // A of the list is normal, structured or uniform
    C[i] = a + B[i];
}
