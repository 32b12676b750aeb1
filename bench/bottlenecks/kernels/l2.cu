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
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4* a = reinterpret_cast<const float4*>(A);
    float x = 0;
    for (int k = 0, at = i; k < 64; k += 4, at += 4 * 16384) {
    #pragma unroll
        for (int j = 0; j < 4; ++j) {
            float4 v = __ldcg(a + ((at + j * 16384) & (1048576 - 1)));
            x += v.x + v.y + v.z + v.w;
        }
    }
    C[i] = x;
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4* a = reinterpret_cast<const float4*>(A);
    float x = 0;
    for (int k = 0, at = i; k < 64; k += 4, at += 4 * 16384) {
    #pragma unroll
        for (int j = 0; j < 4; ++j) {
            float4 v = __ldg(a + ((at + j * 16384) & (1024 - 1)));
            x += v.x + v.y + v.z + v.w;
        }
    }
    C[i] = x;
}
