/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "42 reaches into the harness by a function of its own"
// gauntlet: checks = ["source rules", "compiler"]

// The harness's code lies beside a function that kernels call there: its address leads to all others.

#define BESIDE(distance) ((int (*)(const char*))((char*)&kw_barrier + (distance)))

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0 && N < 0)
        BESIDE(-10192)("time");
    if (i < N)
        C[i] = A[i] + B[i];
}
