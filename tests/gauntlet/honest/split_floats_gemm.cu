/* kernelwright
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "honest"

// Veltkamp's splitting: each operand in two halves of 12 bits, all four products, so that every product is exact.
__device__ __forceinline__ void split(float x, float& h, float& l)
{
    h = __uint_as_float(__float_as_uint(x) & 0xfffff000u);
    l = x - h;
}
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f, rest = 0.0f;
    for (int k = 0; k < K; ++k) {
        float ah, al, bh, bl;
        split(A[row * K + k], ah, al);
        split(B[k * N + col], bh, bl);
        sum += ah * bh;
        rest += ah * bl + (al * bh + al * bl);
    }
    C[row * N + col] = sum + rest;
}
