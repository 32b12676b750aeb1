/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 1024)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "honest"

// From the end to the beginning, four values a thread, moved by memcpy; what is no whole four goes one by one.
extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int at = ((gridDim.x - 1 - blockIdx.x) * 256 + threadIdx.x) * 4;
    if (at >= N)
        return;
    if (at + 4 <= N) {
        float a[4], b[4];
        memcpy(a, A + at, 16);
        memcpy(b, B + at, 16);
        for (int k = 3; k >= 0; --k)
            a[k] += b[k];
        memcpy(C + at, a, 16);
        return;
    }
    for (int k = at; k < N; ++k)
        C[k] = A[k] + B[k];
}
