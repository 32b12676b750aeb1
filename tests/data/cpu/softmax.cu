#include <cuda_runtime.h>
// row softmax: one block per row, the row kept in dynamic shared memory
__device__ float block_reduce(float v, float* red, bool is_max) {
  for (int o = 16; o > 0; o >>= 1) {
    float u = __shfl_xor_sync(0xffffffff, v, o);
    v = is_max ? fmaxf(v, u) : v + u;
  }
  int lane = threadIdx.x & 31, w = threadIdx.x >> 5, nw = blockDim.x >> 5;
  if (lane == 0) red[w] = v;
  __syncthreads();
  v = lane < nw ? red[lane] : (is_max ? -INFINITY : 0.f);
  for (int o = 16; o > 0; o >>= 1) {
    float u = __shfl_xor_sync(0xffffffff, v, o);
    v = is_max ? fmaxf(v, u) : v + u;
  }
  __syncthreads();
  return v;
}
extern "C" __global__ void softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
  extern __shared__ float smem[];           // cols floats, then 32 for the reduction
  float* red = smem + cols;
  const float* row = x + (size_t)blockIdx.x * cols;
  float m = -INFINITY;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) { float v = row[i]; smem[i] = v; m = fmaxf(m, v); }
  m = block_reduce(m, red, true);
  float s = 0.f;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) { float e = __expf(smem[i] - m); smem[i] = e; s += e; }
  s = block_reduce(s, red, false);
  float inv = 1.f / s;
  for (int i = threadIdx.x; i < cols; i += blockDim.x) y[(size_t)blockIdx.x * cols + i] = smem[i] * inv;
}
