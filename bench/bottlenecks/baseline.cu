/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void add(const float* A, const float* B, float* C, int N) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < N) C[i] = A[i] + B[i];
}
