/* kernelwright
[[launch]]
kernel = "planted"
grid = ["num_sms * 2"]
block = [1024]
args = ["A", "B", "C", "N"]
[[launch]]
kernel = "cured"
grid = ["num_sms * 16"]
block = [128]
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void __launch_bounds__(1024, 2) planted(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float r[96];
    #pragma unroll
    for (int j = 0; j < 96; ++j) r[j] = A[(i + j * 32) & (N - 1)];
    for (int k = 0; k < 64; ++k) {
    #pragma unroll
        for (int j = 0; j < 96; ++j) r[j] = r[j] * r[(j + 37) % 96] + 0.25f;
    }
    float x = 0;
    #pragma unroll
    for (int j = 0; j < 96; ++j) x += r[j];
    C[i] = x;
}

extern "C" __global__ void __launch_bounds__(128) cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float r[96];
    #pragma unroll
    for (int j = 0; j < 96; ++j) r[j] = A[(i + j * 32) & (N - 1)];
    for (int k = 0; k < 64; ++k) {
    #pragma unroll
        for (int j = 0; j < 96; ++j) r[j] = r[j] * r[(j + 37) % 96] + 0.25f;
    }
    float x = 0;
    #pragma unroll
    for (int j = 0; j < 96; ++j) x += r[j];
    C[i] = x;
}
