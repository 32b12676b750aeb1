/* kernelwright
[[launch]]
kernel = "planted"
grid = ["cdiv(N, 4096)"]
block = [256]
args = ["A", "B", "C", "N"]
[[launch]]
kernel = "cured"
grid = ["cdiv(N, 4096)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void planted(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    for (int k = 0; k < 8; ++k) atomicAdd(C, A[threadIdx.x] + k);
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    float x = 0;
    for (int k = 0; k < 8; ++k) x += A[threadIdx.x] + k;
    __shared__ float s[8];
    for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(0xffffffff, x, step);
    if ((threadIdx.x & 31) == 0) s[threadIdx.x >> 5] = x;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int j = 1; j < 8; ++j) x += s[j];
        atomicAdd(C, x);
    }
}
