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
    unsigned a[4], b[2];
    for (int j = 0; j < 4; ++j) a[j] = __float_as_uint(A[threadIdx.x + j]);
    for (int j = 0; j < 2; ++j) b[j] = __float_as_uint(B[threadIdx.x + j]);
    float d[8][4] = {};
    for (int k = 0; k < 1024; ++k) {
    #pragma unroll
        for (int j = 0; j < 8; ++j) {
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        }
    }
    float x = 0;
    #pragma unroll
    for (int j = 0; j < 8; ++j) x += d[j][0] + d[j][1] + d[j][2] + d[j][3];
    C[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

extern "C" __global__ void cured(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int N) {
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
