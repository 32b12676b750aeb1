// Built-in variables, barriers and fences.
#pragma once

#define threadIdx (kw_thread.thread)
#define blockIdx (kw_thread.block)
#define blockDim (kw_thread.block_dim)
#define gridDim (kw_thread.grid_dim)
#define warpSize 32

inline void __syncthreads(KW_LINE) { kw_barrier(line); }
inline int __syncthreads_count(int p, KW_LINE) { return kw_barrier_vote(kKwCount, p, line); }
inline int __syncthreads_and(int p, KW_LINE) { return kw_barrier_vote(kKwAnd, p, line); }
inline int __syncthreads_or(int p, KW_LINE) { return kw_barrier_vote(kKwOr, p, line); }

inline void __threadfence_block() { kw_fence(0); }
inline void __threadfence() { kw_fence(1); }
inline void __threadfence_system() { kw_fence(2); }
inline void __nanosleep(unsigned) {}

// No clock, which would tell the checked mode by its slowness: every look at it is 64 ticks after the last one of the
// block. It begins anew at what no other run began at, so that an output that depends on it differs.
inline long long clock64() { return kw_clock(); }
inline long clock() { return static_cast<long>(clock64()); }

// Device printf goes to a bounded log of the runtime, never to the runner's streams.
#define printf(...) kw_print(__VA_ARGS__)
#undef assert
#define assert(condition) ((condition) ? static_cast<void>(0) : kw_assert_failed(#condition, __LINE__))
#define __trap() __builtin_trap()
#define __builtin_assume(condition) static_cast<void>(0)

// The loop hints, cache operators and address spaces of the GPU mean nothing here: plain accesses.
#define KW_LOAD(NAME)                     \
  template <class T>                      \
  __forceinline__ T NAME(const T* from) { \
    return *from;                         \
  }
#define KW_STORE(NAME)                                         \
  template <class T>                                           \
  __forceinline__ void NAME(T* to, kw_device::Same<T> value) { \
    *to = value;                                               \
  }
KW_LOAD(__ldg)
KW_LOAD(__ldcg)
KW_LOAD(__ldca)
KW_LOAD(__ldcs)
KW_LOAD(__ldlu)
KW_LOAD(__ldcv)
KW_STORE(__stwb)
KW_STORE(__stcg)
KW_STORE(__stcs)
KW_STORE(__stwt)
#undef KW_LOAD
#undef KW_STORE

inline size_t __cvta_generic_to_shared(const void* p) { return reinterpret_cast<size_t>(p); }
inline void* __cvta_shared_to_generic(size_t p) { return reinterpret_cast<void*>(p); }
