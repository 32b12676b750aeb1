// Atomics. In fast mode blocks run on several OS threads, so they are real; in checked mode one OS thread
// runs everything and the checker is told of the access.
#pragma once

namespace kw_device {
template <size_t kBytes>
struct Bits;
template <>
struct Bits<2> {
  using type = uint16_t;
};
template <>
struct Bits<4> {
  using type = uint32_t;
};
template <>
struct Bits<8> {
  using type = uint64_t;
};

// Replaces *p by change(*p) and returns the old value. Not watched: for types whose operators are known.
template <class T, class F>
KW_UNCHECKED T update(T* p, F change) {
#ifdef KW_CHECK
  kw_atomic_access(p, sizeof(T), __builtin_return_address(0));
  T old = *p;
  *p = change(old);
  return old;
#else
  using Word = typename Bits<sizeof(T)>::type;
  Word* word = reinterpret_cast<Word*>(p);
  Word expected = __atomic_load_n(word, __ATOMIC_RELAXED), wanted;
  T old;
  do {
    memcpy(&old, &expected, sizeof old);
    T next = change(old);
    memcpy(&wanted, &next, sizeof next);
  } while (!__atomic_compare_exchange_n(word, &expected, wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
#endif
}

template <class T, class F>
__forceinline__ T update_built_in(T* p, F change) {
  static_assert(kBuiltIn<T>, "atomic functions take numbers");
  return update(p, change);
}

// Integer addition has an instruction of its own, which a compare-and-swap loop would not use.
template <class T>
__forceinline__ T add(T* p, T v) {
#ifndef KW_CHECK
  if constexpr (std::is_integral<T>::value) {
    return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
  }
#endif
  return update_built_in(p, [v](T old) -> T { return static_cast<T>(old + v); });
}
}  // namespace kw_device

#define KW_ATOMIC(NAME, EXPRESSION)                                               \
  template <class T>                                                              \
  __forceinline__ T NAME(T* p, kw_device::Same<T> v) {                            \
    return kw_device::update_built_in(p, [v](T old) -> T { return EXPRESSION; }); \
  }                                                                               \
  template <class T>                                                              \
  __forceinline__ T NAME##_block(T* p, kw_device::Same<T> v) {                    \
    return NAME(p, v);                                                            \
  }                                                                               \
  template <class T>                                                              \
  __forceinline__ T NAME##_system(T* p, kw_device::Same<T> v) {                   \
    return NAME(p, v);                                                            \
  }
template <class T>
__forceinline__ T atomicAdd(T* p, kw_device::Same<T> v) {
  return kw_device::add(p, v);
}
template <class T>
__forceinline__ T atomicAdd_block(T* p, kw_device::Same<T> v) {
  return kw_device::add(p, v);
}
template <class T>
__forceinline__ T atomicAdd_system(T* p, kw_device::Same<T> v) {
  return kw_device::add(p, v);
}
KW_ATOMIC(atomicSub, static_cast<T>(old - v))
KW_ATOMIC(atomicExch, (static_cast<void>(old), v))
KW_ATOMIC(atomicMin, v < old ? v : old)
KW_ATOMIC(atomicMax, v > old ? v : old)
KW_ATOMIC(atomicAnd, static_cast<T>(old& v))
KW_ATOMIC(atomicOr, static_cast<T>(old | v))
KW_ATOMIC(atomicXor, static_cast<T>(old ^ v))
KW_ATOMIC(atomicInc, old >= v ? T(0) : static_cast<T>(old + 1))
KW_ATOMIC(atomicDec, (old == 0 || old > v) ? v : static_cast<T>(old - 1))
#undef KW_ATOMIC

template <class T>
__forceinline__ T atomicCAS(T* p, kw_device::Same<T> compare, kw_device::Same<T> v) {
  return kw_device::update_built_in(p, [=](T old) -> T { return old == compare ? v : old; });
}
template <class T>
__forceinline__ T atomicCAS_block(T* p, kw_device::Same<T> compare, kw_device::Same<T> v) {
  return atomicCAS(p, compare, v);
}
template <class T>
__forceinline__ T atomicCAS_system(T* p, kw_device::Same<T> compare, kw_device::Same<T> v) {
  return atomicCAS(p, compare, v);
}
