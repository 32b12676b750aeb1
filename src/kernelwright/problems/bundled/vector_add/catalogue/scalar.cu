/* kernelwright
[tune]
THREADS = [64, 128, 256, 512, 1024]
ELEMENTS = [1, 2, 4, 8]
[[launch]]
kernel = "vector_add"
grid = ["cdiv(N, THREADS * ELEMENTS)"]
block = ["THREADS"]
args = ["A", "B", "C", "N"]
*/

// Scalar accesses, ELEMENTS a thread, coalesced.

extern "C" __global__ void __launch_bounds__(THREADS)
vector_add(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N)
{
    const size_t start = (size_t)blockIdx.x * (THREADS * ELEMENTS) + threadIdx.x;
#pragma unroll
    for (int e = 0; e < ELEMENTS; ++e) {
        const size_t i = start + e * THREADS;
        if (i < (size_t)N)
            C[i] = A[i] + B[i];
    }
}
