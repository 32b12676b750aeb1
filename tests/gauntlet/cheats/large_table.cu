/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "24 more than 64 KiB of constant tables"
// gauntlet: checks = ["binary rules"]

struct Table {
    unsigned v[100000];
    constexpr Table() : v()
    {
        for (int i = 0; i < 100000; ++i)
            v[i] = i * 2654435761u;
    }
};
static constexpr __device__ Table table;

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i] + (table.v[i % 100000] == 1u && i % 100000 == 0 ? 1.0f : 0.0f);
}
