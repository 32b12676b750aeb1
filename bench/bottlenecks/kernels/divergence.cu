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
    float x = A[threadIdx.x];
    int mine = threadIdx.x & 7;
    for (int way = 0; way < 8; ++way) {
        if (mine == way) {
            float y = B[way];
            for (int k = 0; k < 512; ++k) x = x * y + 0.5f;
        }
    }
    C[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    float x = A[threadIdx.x];
    int mine = (threadIdx.x >> 5) & 7;
    for (int way = 0; way < 8; ++way) {
        if (mine == way) {
            float y = B[way];
            for (int k = 0; k < 512; ++k) x = x * y + 0.5f;
        }
    }
    C[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
