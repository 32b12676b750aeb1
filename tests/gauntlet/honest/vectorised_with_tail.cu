/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 1024)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

// Four floats at a time, and the rest by the first threads.

extern "C" __global__ void add(const float4* __restrict__ A, const float4* __restrict__ B, float4* __restrict__ C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N / 4) {
        const float4 a = A[i];
        const float4 b = B[i];
        C[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    }
    const int rest = N / 4 * 4 + i;
    if (i < N % 4)
        reinterpret_cast<float*>(C)[rest] =
            reinterpret_cast<const float*>(A)[rest] + reinterpret_cast<const float*>(B)[rest];
}
