// Warp functions. Every one is a meeting of the lanes named by the mask: each lane brings a value and reads
// what the others brought, so one switch per lane serves shuffles, votes, matches and reductions alike.
#pragma once

namespace kw_device {
constexpr unsigned kFullMask = 0xffffffffu;

inline unsigned lane() { return kw_thread.rank & 31; }

template <class T>
inline T shuffle(unsigned mask, T value, unsigned source, int line) {
  static_assert(std::is_trivially_copyable<T>::value, "a shuffle needs a plain type");
  constexpr size_t kWords = (sizeof(T) + 7) / 8;
  uint64_t words[kWords] = {};
  memcpy(words, &value, sizeof(T));
  for (uint64_t& word : words) {
    const KwLanes* lanes = kw_warp_meet(kKwShuffle, mask, word, line);
    if (lanes->arrived >> source & 1) {
      word = lanes->value[source];
    } else {
      kw_bad_shuffle(source, line);
    }
  }
  memcpy(&value, words, sizeof(T));
  return value;
}

// Folds the values of the named lanes, in lane order, in one meeting.
template <class T, class F>
inline T reduce(unsigned mask, T value, F combine, int line) {
  static_assert(sizeof(T) <= 8, "a warp reduction takes values of up to 8 bytes");
  uint64_t word = 0;
  memcpy(&word, &value, sizeof(T));
  const KwLanes* lanes = kw_warp_meet(kKwReduce, mask, word, line);
  bool first = true;
  for (unsigned l = 0; l < 32; l++) {
    if (lanes->arrived >> l & 1) {
      T other;
      memcpy(&other, &lanes->value[l], sizeof(T));
      value = first ? other : combine(value, other);
      first = false;
    }
  }
  return value;
}

inline unsigned ballot(unsigned mask, bool predicate, int line) {
  const KwLanes* lanes = kw_warp_meet(kKwVote, mask, predicate, line);
  unsigned result = 0;
  for (unsigned l = 0; l < 32; l++) {
    result |= static_cast<unsigned>((lanes->arrived >> l & 1) && lanes->value[l]) << l;
  }
  return result;
}
}  // namespace kw_device

template <class T>
inline T __shfl_sync(unsigned mask, T v, int source, int width = 32, KW_LINE) {
  const unsigned l = kw_device::lane(), w = static_cast<unsigned>(width);
  return kw_device::shuffle(mask, v, (l & ~(w - 1)) | (static_cast<unsigned>(source) & (w - 1)), line);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32, KW_LINE) {
  const unsigned l = kw_device::lane(), w = static_cast<unsigned>(width);
  const unsigned source = l ^ static_cast<unsigned>(lanes);
  return kw_device::shuffle(mask, v, source >= (l & ~(w - 1)) + w ? l : source, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32, KW_LINE) {
  const unsigned l = kw_device::lane(), w = static_cast<unsigned>(width);
  return kw_device::shuffle(mask, v, l + delta >= (l & ~(w - 1)) + w ? l : l + delta, line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32, KW_LINE) {
  const unsigned l = kw_device::lane(), w = static_cast<unsigned>(width);
  return kw_device::shuffle(mask, v, l < (l & ~(w - 1)) + delta ? l : l - delta, line);
}

inline void __syncwarp(unsigned mask = kw_device::kFullMask, KW_LINE) { kw_warp_meet(kKwSync, mask, 0, line); }
inline unsigned __activemask(KW_LINE) { return kw_active_mask(line); }
inline unsigned __ballot_sync(unsigned mask, int p, KW_LINE) { return kw_device::ballot(mask, p != 0, line); }
inline int __any_sync(unsigned mask, int p, KW_LINE) { return kw_device::ballot(mask, p != 0, line) != 0; }
inline int __all_sync(unsigned mask, int p, KW_LINE) { return kw_device::ballot(mask, p == 0, line) == 0; }

template <class T>
inline unsigned __match_any_sync(unsigned mask, T v, KW_LINE) {
  uint64_t word = 0;
  memcpy(&word, &v, sizeof v);
  const KwLanes* lanes = kw_warp_meet(kKwMatch, mask, word, line);
  unsigned equal = 0;
  for (unsigned l = 0; l < 32; l++) {
    equal |= static_cast<unsigned>((lanes->arrived >> l & 1) && lanes->value[l] == word) << l;
  }
  return equal;
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T v, int* all, KW_LINE) {
  const unsigned equal = __match_any_sync(mask, v, line);
  *all = equal == mask;
  return *all ? mask : 0;
}

#define KW_REDUCE(NAME, EXPRESSION)                                                               \
  template <class T>                                                                              \
  inline T NAME(unsigned mask, T v, KW_LINE) {                                                    \
    static_assert(std::is_integral<T>::value, #NAME " takes integers");                           \
    return kw_device::reduce(mask, v, [](T a, T b) { return static_cast<T>(EXPRESSION); }, line); \
  }
KW_REDUCE(__reduce_add_sync, a + b)
KW_REDUCE(__reduce_min_sync, a < b ? a : b)
KW_REDUCE(__reduce_max_sync, a > b ? a : b)
KW_REDUCE(__reduce_and_sync, a& b)
KW_REDUCE(__reduce_or_sync, a | b)
KW_REDUCE(__reduce_xor_sync, a ^ b)
#undef KW_REDUCE
