/* kernelwright
[tune]
TPB = [96, 128, 512]
ITEMS = [3, 2]
[tune.compiler]
maxrregcount = [64, 0]
use_fast_math = [true, false]
[constraints]
work = "TPB * ITEMS <= 1024"
[let]
CHUNK = "TPB * ITEMS"
[[launch]]
kernel = "add"
grid = ["cdiv(N, CHUNK)"]
block = ["TPB"]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

// Tunables, constraints, named values, compiler settings.

extern "C" __global__ void __launch_bounds__(TPB, 2) add(const float* A, const float* B, float* C, int N)
{
#pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
        const int i = blockIdx.x * CHUNK + k * TPB + threadIdx.x;
        if (i < N)
            C[i] = A[i] + B[i];
    }
}
