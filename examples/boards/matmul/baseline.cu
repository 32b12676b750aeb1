/* kernelwright
[[launch]]
kernel = "matmul"
grid = ["cdiv(N, 16)", "cdiv(M, 16)"]
block = [16, 16]
args = ["A", "B", "C", "M", "N", "K"]
*/
#include <cuda_fp16.h>

// One thread an element of C.

extern "C" __global__ void matmul(const __half* A, const __half* B, __half* C, int M, int N, int K)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || column >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += __half2float(A[(size_t)row * K + k]) * __half2float(B[(size_t)k * N + column]);
    C[(size_t)row * N + column] = __float2half(sum);
}
