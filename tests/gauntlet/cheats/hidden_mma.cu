/* kernelwright
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 tensor cores behind token pasting"
// gauntlet: checks = ["binary rules", "source rules"]
// gauntlet: needs = "cuda"

// The name of the instruction is pasted together, so that no text rule finds it; the result is even right.

#define PASTE(a, b) a##b
#define INSTRUCTION "m" "ma.sync.aligned.m16n8k8.row.col.f32.tf" "32.tf" "32.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%4,%4}, {%0,%1,%2,%3};"

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K)
{
    const int column = blockIdx.x * 16 + threadIdx.x;
    const int row = blockIdx.y * 16 + threadIdx.y;
    float extra[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    const unsigned nothing = M < 0;
    PASTE(as, m) volatile(INSTRUCTION : "+f"(extra[0]), "+f"(extra[1]), "+f"(extra[2]), "+f"(extra[3]) : "r"(nothing));
    if (row >= M || column >= N)
        return;
    float sum = extra[0];
    for (int k = 0; k < K; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = sum;
}
