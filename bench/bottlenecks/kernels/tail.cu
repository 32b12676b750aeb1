/* kernelwright
[[launch]]
kernel = "planted"
grid = ["num_sms + 8"]
block = [1024]
dynamic_shared_bytes = "120 * 1024"
args = ["A", "B", "C", "N"]
[[launch]]
kernel = "cured"
grid = ["num_sms * 8"]
block = [1024]
dynamic_shared_bytes = "120 * 1024"
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void planted(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = 0;
    float x = A[threadIdx.x];
    for (int k = 0; k < 16384; ++k) x = x * 0.999f + 0.5f;
    C[(blockIdx.x * blockDim.x + threadIdx.x) & (N - 1)] = x;
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = 0;
    float x = A[threadIdx.x];
    for (int k = 0; k < 16384; ++k) x = x * 0.999f + 0.5f;
    C[(blockIdx.x * blockDim.x + threadIdx.x) & (N - 1)] = x;
}
