/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 device heap: memory that outlives a launch"
// gauntlet: checks = ["binary rules", "source rules", "compiler"]

// Allocates from the device's heap and never frees.

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= N)
        return;
    float* kept = (float*)malloc(sizeof(float));
    if (kept)
        *kept = A[i];
    C[i] = (kept ? *kept : A[i]) + B[i];
}
