/* kernelwright
[tune]
T0 = [1, 2, 3, 4, 5, 6, 7, 8]
T1 = [1, 2, 3, 4, 5, 6, 7, 8]
T2 = [1, 2, 3, 4, 5, 6, 7, 8]
T3 = [1, 2, 3, 4, 5, 6, 7, 8]
T4 = [1, 2, 3, 4, 5, 6, 7, 8]
T5 = [1, 2, 3, 4, 5, 6, 7, 8]
T6 = [1, 2, 3, 4, 5, 6, 7, 8]
T7 = [1, 2, 3, 4, 5, 6, 7, 8]
T8 = [1, 2, 3, 4, 5, 6, 7, 8]
T9 = [1, 2, 3, 4, 5, 6, 7, 8]
T10 = [1, 2, 3, 4, 5, 6, 7, 8]
T11 = [1, 2, 3, 4, 5, 6, 7, 8]
T12 = [1, 2, 3, 4, 5, 6, 7, 8]
T13 = [1, 2, 3, 4, 5, 6, 7, 8]
T14 = [1, 2, 3, 4, 5, 6, 7, 8]
T15 = [1, 2, 3, 4, 5, 6, 7, 8]
T16 = [1, 2, 3, 4, 5, 6, 7, 8]
T17 = [1, 2, 3, 4, 5, 6, 7, 8]
[constraints]
rare = "(T0 ** 3 + T1 ** 3 + T2 ** 3 + T3 ** 3 + T4 ** 3 + T5 ** 3 + T6 ** 3 + T7 ** 3 + T8 ** 3 + T9 ** 3 + T10 ** 3 + T11 ** 3 + T12 ** 3 + T13 ** 3 + T14 ** 3 + T15 ** 3 + T16 ** 3 + T17 ** 3) % 1000003 == 999999"
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 plan bomb: constraints that take hours"
// gauntlet: checks = ["plan"]

// Eighteen tunables of which the last constraint decides.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
