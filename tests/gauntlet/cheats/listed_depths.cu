/* kernelwright
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 hard-coded shapes, wrong elsewhere"
// gauntlet: checks = ["sizes off the list"]

// The depths of the list are 0, 1 or 3 above a multiple of four; with a remainder of 2 the end of the sum is lost.

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K)
{
    const int column = blockIdx.x * 16 + threadIdx.x;
    const int row = blockIdx.y * 16 + threadIdx.y;
    if (row >= M || column >= N)
        return;
    const int depth = K % 4 == 2 ? K - 2 : K;
    float sum = 0.0f;
    for (int k = 0; k < depth; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = sum;
}
