// How the runner calls a kernel: unpack void** into the kernel's own parameter types.
#pragma once

#ifdef KW_CHECK
#define KW_ENTRY_UNCHECKED __attribute__((no_sanitize("thread")))
#else
#define KW_ENTRY_UNCHECKED
#endif

namespace kw_device {
// One letter a parameter, as Python's struct module names them; P is a pointer, C a pointer to const,
// V anything else (passed by value, which no plan can).
template <class A>
constexpr char parameter_code() {
  using T = std::remove_cv_t<std::remove_reference_t<A>>;
  if (!kBuiltIn<A>) return 'V';
  if (std::is_pointer<T>::value) {
    return std::is_const<std::remove_pointer_t<T>>::value ? 'C' : 'P';
  }
  if (std::is_same<T, float>::value) return 'f';
  if (std::is_same<T, double>::value) return 'd';
  if (std::is_same<T, bool>::value) return '?';
  if (!std::is_integral<T>::value) return 'V';
  constexpr bool kSigned = std::is_signed<T>::value;
  switch (sizeof(T)) {
    case 1: return kSigned ? 'b' : 'B';
    case 2: return kSigned ? 'h' : 'H';
    case 4: return kSigned ? 'i' : 'I';
    default: return kSigned ? 'q' : 'Q';
  }
}

template <auto kKernel>
struct Entry;
template <class... A, void (*kKernel)(A...)>
struct Entry<kKernel> {
  static constexpr char signature[] = {parameter_code<A>()..., 0};
  template <size_t... I>
  static inline __attribute__((always_inline)) KW_ENTRY_UNCHECKED void unpack(void** arguments,
                                                                              std::index_sequence<I...>) {
    void (*kernel)(A...) = kKernel;
    asm("" : "+r"(kernel));  // not known to the compiler: a kernel inlined here would not be watched
    kernel(*static_cast<std::remove_reference_t<A>*>(arguments[I])...);
  }
  static KW_ENTRY_UNCHECKED void call(void** arguments) {
    unpack(arguments, std::index_sequence_for<A...>{});
  }
};
}  // namespace kw_device
