#include <cuda_runtime.h>
// sum of n floats: grid-stride loads, warp shuffles, one shared slot per warp, one atomicAdd per block
__device__ __forceinline__ float warp_sum(float v) {
#pragma unroll
  for (int o = 16; o > 0; o >>= 1) v += __shfl_down_sync(0xffffffff, v, o);
  return v;
}
extern "C" __global__ void reduce_sum(const float* __restrict__ x, float* out, int n) {
  __shared__ float part[32];
  float s = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
  s = warp_sum(s);
  int lane = threadIdx.x & 31, w = threadIdx.x >> 5;
  if (lane == 0) part[w] = s;
  __syncthreads();
  if (w == 0) {
    s = lane < (blockDim.x + 31) / 32 ? part[lane] : 0.f;
    s = warp_sum(s);
    if (lane == 0) atomicAdd(out, s);
  }
}
