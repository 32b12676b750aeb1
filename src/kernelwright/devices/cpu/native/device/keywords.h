// CUDA's keywords for an ordinary C++ compiler. Included after every standard header, because some of these
// names occur inside the standard library's own headers.
#pragma once

#define __global__
#define __device__
#define __host__
#define __managed__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __block_size__(...)
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))

// Only a mark that the build looks for: an unknown attribute is ignored by the compiler.
#define __constant__ __attribute__((kw_constant))

// A block runs from start to finish on one OS thread, so storage per thread is storage per block.
// `extern __shared__ T s[]` becomes an undefined TLS symbol; the build aliases all of them to one arena.
// Marked as used: the compiler must not take an array that no code writes for one that is always 0.
#define __shared__ thread_local __attribute__((used))

#define __CUDACC__ 1
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 8
#define __NVCC__ 1
#define __CUDA_ARCH__ 800
#define KERNELWRIGHT_CPU 1

// The line of the caller, for findings: a default argument is evaluated at the call.
#define KW_LINE int line = __builtin_LINE()

#ifdef KW_CHECK
// Runs uninstrumented: the runtime is told of the access as a whole.
#define KW_UNCHECKED __attribute__((no_sanitize("thread"), noinline))
#else
#define KW_UNCHECKED inline
#endif

namespace kw_device {
// Keeps a parameter out of template argument deduction: atomicAdd(float*, 1) must take T = float.
template <class T>
struct NotDeduced {
  using type = T;
};
template <class T>
using Same = typename NotDeduced<T>::type;

// Whether no code of the candidate's runs where a T is copied or computed with. Asks the compiler itself: what std
// says of a type can be specialised.
template <class T>
constexpr bool kBuiltIn = !__is_class(T) && !__is_union(T) && !__is_enum(T);
}  // namespace kw_device
