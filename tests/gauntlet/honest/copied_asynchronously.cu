/* kernelwright
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "honest"
// gauntlet: needs = "cuda"

// cp.async in inline PTX fills the tiles, which this problem permits.

__device__ __forceinline__ void copy(float* to, const float* from, bool inside)
{
    const unsigned address = (unsigned)__cvta_generic_to_shared(to);
    const int bytes = inside ? 4 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K)
{
    __shared__ float a[16][16];
    __shared__ float b[16][16];
    const int column = blockIdx.x * 16 + threadIdx.x;
    const int row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < K; k += 16) {
        const bool in_a = row < M && k + threadIdx.x < K;
        const bool in_b = column < N && k + threadIdx.y < K;
        copy(&a[threadIdx.y][threadIdx.x], in_a ? A + (size_t)row * K + k + threadIdx.x : A, in_a);
        copy(&b[threadIdx.y][threadIdx.x], in_b ? B + (size_t)(k + threadIdx.y) * N + column : B, in_b);
        asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
        __syncthreads();
        for (int d = 0; d < 16; ++d)
            sum += a[threadIdx.y][d] * b[d][threadIdx.x];
        __syncthreads();
    }
    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
