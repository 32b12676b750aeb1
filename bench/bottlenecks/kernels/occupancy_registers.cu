/* kernelwright
[[launch]]
kernel = "planted"
grid = ["num_sms * 32"]
block = [128]
args = ["A", "B", "C", "N"]
[[launch]]
kernel = "cured"
grid = ["num_sms * 32"]
block = [128]
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void planted(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float r[160];
    #pragma unroll
    for (int j = 0; j < 160; ++j) r[j] = B[(i + j * 32) & (N - 1)];
    #pragma unroll
    for (int j = 0; j < 160; ++j) asm volatile("" : "+f"(r[j]));
    float x = 0;
    for (int k = 0, at = i; k < 48; ++k, at = (at + 1048583) & (N - 1)) x += A[(at + (x > 1e30f)) & (N - 1)];
    #pragma unroll
    for (int j = 0; j < 160; ++j) asm volatile("" : "+f"(r[j]));
    #pragma unroll
    for (int j = 0; j < 160; ++j) x += r[j];
    C[i] = x;
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = 0;
    for (int k = 0, at = i; k < 48; ++k, at = (at + 1048583) & (N - 1)) x += A[(at + (x > 1e30f)) & (N - 1)];
    C[i] = x;
}
