/* kernelwright
[[launch]]
kernel = "planted"
grid = ["num_sms * 2"]
block = [1024]
args = ["A", "B", "C", "N"]
[[launch]]
kernel = "cured"
grid = ["num_sms * 2"]
block = [1024]
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void planted(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    float x = A[threadIdx.x];
    for (int round = 0; round < 64; ++round) {
        if ((threadIdx.x >> 5) == (round & 31)) {
            for (int k = 0; k < 256; ++k) x = x * 0.999f + 0.5f;
        }
        __syncthreads();
    }
    C[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    float x = A[threadIdx.x];
    for (int k = 0; k < 4096; ++k) x = x * 0.999f + 0.5f;
    C[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
