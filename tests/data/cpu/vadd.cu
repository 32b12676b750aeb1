#include <cuda_runtime.h>
// c = a + b, one float4 per thread, scalar tail
extern "C" __global__ void __launch_bounds__(256) vadd(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i + 3 < n) {
    float4 x = *reinterpret_cast<const float4*>(a + i);
    float4 y = __ldg(reinterpret_cast<const float4*>(b + i));
    *reinterpret_cast<float4*>(c + i) = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
  } else {
    for (; i < n; i++) c[i] = a[i] + b[i];
  }
}
