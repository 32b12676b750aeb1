/* kernelwright
[scratch]
parts = { dtype = "float32", shape = [2, "M", "N"] }
[[launch]]
kernel = "part"
grid = ["cdiv(N, 16)", "cdiv(M, 16)", 2]
block = [16, 16]
args = ["A", "B", "parts", "M", "N", "K"]
[[launch]]
kernel = "join"
grid = ["cdiv(M * N, 256)"]
block = [256]
args = ["parts", "C", "M * N"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "honest"

// The sum over k is cut in two halves in scratch, a second launch adds them.

extern "C" __global__ void part(const float* A, const float* B, float* parts, int M, int N, int K)
{
    const int column = blockIdx.x * 16 + threadIdx.x;
    const int row = blockIdx.y * 16 + threadIdx.y;
    if (row >= M || column >= N)
        return;
    const int from = blockIdx.z == 0 ? 0 : K / 2;
    const int to = blockIdx.z == 0 ? K / 2 : K;
    float sum = 0.0f;
    for (int k = from; k < to; ++k)
        sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    parts[((size_t)blockIdx.z * M + row) * N + column] = sum;
}

extern "C" __global__ void join(const float* parts, float* C, int count)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        C[i] = parts[i] + parts[(size_t)count + i];
}
