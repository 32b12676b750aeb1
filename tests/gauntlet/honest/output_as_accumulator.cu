/* kernelwright
[[launch]]
kernel = "clear"
grid = ["cdiv(M * N, 256)"]
block = [256]
args = ["C", "M", "N"]
[[launch]]
kernel = "slice"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K", "0", "K // 2"]
[[launch]]
kernel = "slice"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K", "K // 2", "K"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "honest"

// The output itself is the accumulator of three launches.
extern "C" __global__ void clear(float* C, int M, int N)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < M * N)
        C[i] = 0.0f;
}
extern "C" __global__ void slice(const float* A, const float* B, float* C, int M, int N, int K, int from, int to)
{
    __shared__ float a[16][17], b[16][17];
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    float sum = 0.0f;
    for (int k0 = from; k0 < to; k0 += 16) {
        a[threadIdx.y][threadIdx.x] = row < M && k0 + (int)threadIdx.x < to ? A[row * K + k0 + threadIdx.x] : 0.0f;
        b[threadIdx.y][threadIdx.x] = col < N && k0 + (int)threadIdx.y < to ? B[(k0 + threadIdx.y) * N + col] : 0.0f;
        __syncthreads();
        for (int k = 0; k < 16; ++k)
            sum = fmaf(a[threadIdx.y][k], b[k][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < M && col < N)
        C[row * N + col] += sum;
}
