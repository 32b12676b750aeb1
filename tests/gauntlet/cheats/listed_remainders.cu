/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 1024)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "33 hard-coded shapes, wrong elsewhere"
// gauntlet: checks = ["sizes off the list", "poison"]

// Every size of the list leaves 0 or 3 elements after its last float4: other remainders are not handled.

extern "C" __global__ void add(const float4* A, const float4* B, float4* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N / 4) {
        const float4 a = A[i];
        const float4 b = B[i];
        C[i] = make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
    }
    const float* a = (const float*)A;
    const float* b = (const float*)B;
    if (i == 0 && N % 4 == 3)
        for (int k = N - 3; k < N; ++k)
            ((float*)C)[k] = a[k] + b[k];
}
