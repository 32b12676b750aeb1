/* kernelwright
[[launch]]
kernel = "planted"
grid = ["num_sms * 8"]
block = [256]
args = ["A", "B", "C", "N"]
[[launch]]
kernel = "cured"
grid = ["num_sms * 8"]
block = [256]
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void planted(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    float x[8], y = A[threadIdx.x];
    #pragma unroll
    for (int j = 0; j < 8; ++j) x[j] = y + j;
    for (int k = 0; k < 1024; ++k) {
    #pragma unroll
        for (int j = 0; j < 8; ++j) x[j] = x[j] * y + 0.5f;
    }
    for (int j = 1; j < 8; ++j) x[0] += x[j];
    C[blockIdx.x * blockDim.x + threadIdx.x] = x[0];
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4* a = reinterpret_cast<const float4*>(A);
    float4* c = reinterpret_cast<float4*>(C);
    for (; i < N / 4; i += gridDim.x * blockDim.x) c[i] = a[i];
}
