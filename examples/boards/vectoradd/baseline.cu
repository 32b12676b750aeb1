/* kernelwright
[let]
COUNT = "N * N"
[[launch]]
kernel = "vector_add"
grid = ["cdiv(COUNT, 256)"]
block = [256]
args = ["A", "B", "C", "COUNT"]
*/
#include <cuda_fp16.h>

// One thread an element.

extern "C" __global__ void vector_add(const __half* A, const __half* B, __half* C, int count)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        C[i] = __hadd(A[i], B[i]);
}
