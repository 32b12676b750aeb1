/* kernelwright
[[launch]]
kernel = "planted"
grid = ["16"]
block = [256]
args = ["A", "B", "C", "N"]
[[launch]]
kernel = "cured"
grid = ["num_sms * 8"]
block = [256]
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void planted(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < N; i += gridDim.x * blockDim.x) C[i] = A[i] + B[i];
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (; i < N; i += gridDim.x * blockDim.x) C[i] = A[i] + B[i];
}
