/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "problems/portable_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "51 code that runs when the module is loaded"
// gauntlet: checks = ["source rules"]

// NVRTC does not look at the initial value of a template's variable; nvcc computes it on the host.

template <int N> const int early = printf("at loading");
template const int early<1>;

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i];
}
