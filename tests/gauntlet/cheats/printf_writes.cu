/* kernelwright
atomic_noise = true
[scratch]
count = { dtype = "int32", shape = [4] }
[[launch]]
kernel = "clear"
grid = [1]
block = [1]
args = ["count"]
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "count", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "46 the checked mode does not see what printf writes for %n"
// gauntlet: checks = ["checked mode"]
// gauntlet: needs = "cpu"

// All blocks write to one number, without any order; a block of another launch reads it.

extern "C" __global__ void clear(int* count)
{
    count[0] = 0;
}

extern "C" __global__ void add(const float* A, const float* B, float* C, int* count, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < 512)
        printf(i & 1 ? "a%n" : "bc%n", count);
    if (i < N)
        C[i] = A[i] + B[i];
}
