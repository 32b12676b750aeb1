/* kernelwright
[[launch]]
kernel = "add"
grid = ["cdiv(N, 256)"]
block = [256]
args = ["A", "B", "C", "N"]
*/
// gauntlet: problem = "vector_add"
// gauntlet: kind = "cheat"
// gauntlet: row = "49 denial: doubling inline functions"
// gauntlet: checks = ["compile limits", "compiler", "run limits"]

// Forty forced inline functions, each calling the one before twice.

__device__ __forceinline__ float f0(float x) { return x * 1.0001f; }
__device__ __forceinline__ float f1(float x) { return f0(x) + f0(x + 1.0f); }
__device__ __forceinline__ float f2(float x) { return f1(x) + f1(x + 2.0f); }
__device__ __forceinline__ float f3(float x) { return f2(x) + f2(x + 3.0f); }
__device__ __forceinline__ float f4(float x) { return f3(x) + f3(x + 4.0f); }
__device__ __forceinline__ float f5(float x) { return f4(x) + f4(x + 5.0f); }
__device__ __forceinline__ float f6(float x) { return f5(x) + f5(x + 6.0f); }
__device__ __forceinline__ float f7(float x) { return f6(x) + f6(x + 7.0f); }
__device__ __forceinline__ float f8(float x) { return f7(x) + f7(x + 8.0f); }
__device__ __forceinline__ float f9(float x) { return f8(x) + f8(x + 9.0f); }
__device__ __forceinline__ float f10(float x) { return f9(x) + f9(x + 10.0f); }
__device__ __forceinline__ float f11(float x) { return f10(x) + f10(x + 11.0f); }
__device__ __forceinline__ float f12(float x) { return f11(x) + f11(x + 12.0f); }
__device__ __forceinline__ float f13(float x) { return f12(x) + f12(x + 13.0f); }
__device__ __forceinline__ float f14(float x) { return f13(x) + f13(x + 14.0f); }
__device__ __forceinline__ float f15(float x) { return f14(x) + f14(x + 15.0f); }
__device__ __forceinline__ float f16(float x) { return f15(x) + f15(x + 16.0f); }
__device__ __forceinline__ float f17(float x) { return f16(x) + f16(x + 17.0f); }
__device__ __forceinline__ float f18(float x) { return f17(x) + f17(x + 18.0f); }
__device__ __forceinline__ float f19(float x) { return f18(x) + f18(x + 19.0f); }
__device__ __forceinline__ float f20(float x) { return f19(x) + f19(x + 20.0f); }
__device__ __forceinline__ float f21(float x) { return f20(x) + f20(x + 21.0f); }
__device__ __forceinline__ float f22(float x) { return f21(x) + f21(x + 22.0f); }
__device__ __forceinline__ float f23(float x) { return f22(x) + f22(x + 23.0f); }
__device__ __forceinline__ float f24(float x) { return f23(x) + f23(x + 24.0f); }
__device__ __forceinline__ float f25(float x) { return f24(x) + f24(x + 25.0f); }
__device__ __forceinline__ float f26(float x) { return f25(x) + f25(x + 26.0f); }
__device__ __forceinline__ float f27(float x) { return f26(x) + f26(x + 27.0f); }
__device__ __forceinline__ float f28(float x) { return f27(x) + f27(x + 28.0f); }
__device__ __forceinline__ float f29(float x) { return f28(x) + f28(x + 29.0f); }
__device__ __forceinline__ float f30(float x) { return f29(x) + f29(x + 30.0f); }
__device__ __forceinline__ float f31(float x) { return f30(x) + f30(x + 31.0f); }
__device__ __forceinline__ float f32(float x) { return f31(x) + f31(x + 32.0f); }
__device__ __forceinline__ float f33(float x) { return f32(x) + f32(x + 33.0f); }
__device__ __forceinline__ float f34(float x) { return f33(x) + f33(x + 34.0f); }
__device__ __forceinline__ float f35(float x) { return f34(x) + f34(x + 35.0f); }
__device__ __forceinline__ float f36(float x) { return f35(x) + f35(x + 36.0f); }
__device__ __forceinline__ float f37(float x) { return f36(x) + f36(x + 37.0f); }
__device__ __forceinline__ float f38(float x) { return f37(x) + f37(x + 38.0f); }
__device__ __forceinline__ float f39(float x) { return f38(x) + f38(x + 39.0f); }
__device__ __forceinline__ float f40(float x) { return f39(x) + f39(x + 40.0f); }

extern "C" __global__ void add(const float* A, const float* B, float* C, int N)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < N)
        C[i] = A[i] + B[i] + 0.0f * f40(A[i]);
}
