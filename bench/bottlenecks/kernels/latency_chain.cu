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
    int at = (i >> 5) * 977;
    for (int k = 0; k < 512; ++k) at = (at * 5 + 1 + (__float_as_int(A[at & 4194303]) & 15)) & 4194303;
    C[i] = at;
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4* a = reinterpret_cast<const float4*>(A);
    float4* c = reinterpret_cast<float4*>(C);
    for (; i < N / 4; i += gridDim.x * blockDim.x) c[i] = a[i];
}
