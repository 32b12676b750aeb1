/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: macro bomb"
// gauntlet: checks = ["compile limits", "compiler"]

// Ten macros of ten macros each: 10^10 tokens.

#define X0 +1
#define X1 X0 X0 X0 X0 X0 X0 X0 X0 X0 X0
#define X2 X1 X1 X1 X1 X1 X1 X1 X1 X1 X1
#define X3 X2 X2 X2 X2 X2 X2 X2 X2 X2 X2
#define X4 X3 X3 X3 X3 X3 X3 X3 X3 X3 X3
#define X5 X4 X4 X4 X4 X4 X4 X4 X4 X4 X4
#define X6 X5 X5 X5 X5 X5 X5 X5 X5 X5 X5
#define X7 X6 X6 X6 X6 X6 X6 X6 X6 X6 X6
#define X8 X7 X7 X7 X7 X7 X7 X7 X7 X7 X7
#define X9 X8 X8 X8 X8 X8 X8 X8 X8 X8 X8
#define X10 X9 X9 X9 X9 X9 X9 X9 X9 X9 X9

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i] + 0.0f * (0 X10);
}
