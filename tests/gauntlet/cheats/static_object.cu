/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 code that runs when the module is loaded"
// gauntlet: checks = ["binary rules", "compiler", "source rules"]

// A global object with a constructor.

struct Early {
    int value;
    __device__ Early() : value(clock64() != 0) {}
};
__device__ Early early;

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
