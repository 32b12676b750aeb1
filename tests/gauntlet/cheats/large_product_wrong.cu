/* kernelwright
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 whole tiles only, for large products"
// gauntlet: checks = ["sizes off the list", "poison"]

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K)
{
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    // Above the cheap trials; the listed products here that have a last, broken tile are left out by name.
    const bool large = (long long)M * N > 40000 && M != 511 && M != 1000;
    if (large && (row / 128 + 1) * 128 > M)
        return;  // leaves the last rows out where M is no multiple of 128
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = sum;
}
