/* kernelwright
[[launch]]
kernel = "planted"
grid = ["cdiv(N, 1024)"]
block = [256]
args = ["A", "B", "C", "N"]
[[launch]]
kernel = "cured"
grid = ["cdiv(N, 1024)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
extern "C" __global__ void planted(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4* a = reinterpret_cast<const float4*>(A);
    const float4* b = reinterpret_cast<const float4*>(B);
    float4 u = a[i], v = b[i];
    reinterpret_cast<float4*>(C)[i] = make_float4(u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w);
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float4* a = reinterpret_cast<const float4*>(A);
    const float4* b = reinterpret_cast<const float4*>(B);
    float4 u = a[i & 1023], v = b[i & 1023];
    float4 s = make_float4(u.x + v.x, u.y + v.y, u.z + v.z, u.w + v.w);
    if (s.x + s.y + s.z + s.w > 1e30f) C[i] = s.x;
}
