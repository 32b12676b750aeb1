/* kernelwright
[tune]
T0 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
T1 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
T2 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
T3 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
T4 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
T5 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
T6 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
T7 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
T8 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
T9 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
T10 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
T11 = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 plan bomb: 10^12 configurations"
// gauntlet: checks = ["plan"]

// Twelve tunables of ten values each.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
