/* kernelwright
[[launch]]
kernel = "gemm"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
*/
// gauntlet: problem = "gemm"
// gauntlet: kind = "honest"

// Copies to shared memory through the pipeline primitives.

#include <cuda_pipeline.h>

extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K)
{
    __shared__ float a[16][16];
    const int column = blockIdx.x * 16 + threadIdx.x;
    const int row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < K; k += 16) {
        if (row < M && k + threadIdx.x < K)
            __pipeline_memcpy_async(&a[threadIdx.y][threadIdx.x], A + (size_t)row * K + k + threadIdx.x, 4);
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        if (row < M && column < N)
            for (int d = 0; d < min(16, K - k); ++d)
                sum += a[threadIdx.y][d] * B[(size_t)(k + d) * N + column];
        __syncthreads();
    }
    if (row < M && column < N)
        C[(size_t)row * N + column] = sum;
}
