/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "23 drift after N calls, counted beyond the end of the output"
// gauntlet: checks = ["checked mode", "guard bands", "repeat"]

// Counts its calls in the bytes behind C: right until the count is full, garbage afterwards.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned* count = (unsigned*)(C + N) + 5;
    if (i < N)
        C[i] = *count - 0x1234u < 1000u && *count - 0x1234u > 20u ? A[i] : A[i] + B[i];
    if (i == 0)
        *count = *count - 0x1234u < 1000u ? *count + 1 : 0x1234u;
}
