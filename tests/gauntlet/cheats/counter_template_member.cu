/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "19 static state across calls"
// gauntlet: checks = ["binary rules", "compiler"]

// The counter is a static data member of a class template.

template <int ID>
struct Memory {
    static __device__ int calls;
};
template <int ID>
__device__ int Memory<ID>::calls = 0;

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0)
        ++Memory<7>::calls;
    if (i < N)
        C[i] = Memory<7>::calls < 100 ? A[i] + B[i] : B[i];
}
