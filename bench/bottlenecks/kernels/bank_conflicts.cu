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
    __shared__ float s[32 * 32];
    for (int j = threadIdx.x; j < 32 * 32; j += blockDim.x) s[j] = A[j];
    __syncthreads();
    int lane = threadIdx.x & 31, at = threadIdx.x >> 5;
    float x = 0;
    for (int k = 0; k < 1024; ++k) {
        at = (at + 1 + (x > 1e30f)) & 31;
        x += s[lane * 32 + at];
    }
    C[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    __shared__ float s[32 * 33];
    for (int j = threadIdx.x; j < 32 * 33; j += blockDim.x) s[j] = A[j];
    __syncthreads();
    int lane = threadIdx.x & 31, at = threadIdx.x >> 5;
    float x = 0;
    for (int k = 0; k < 1024; ++k) {
        at = (at + 1 + (x > 1e30f)) & 31;
        x += s[lane * 33 + at];
    }
    C[blockIdx.x * blockDim.x + threadIdx.x] = x;
}
