/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 right below 2^20 and on the list, nothing is written for half of the other sizes"
// gauntlet: checks = ["sizes off the list", "poison"]

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    // Large sizes of the list are multiples of 4, or one less than one: 33554431.
    if (N > 1048576 && N % 4 != 0 && N % 4 != 3)
        return;
    if (i < N)
        C[i] = A[i] + B[i];
}
