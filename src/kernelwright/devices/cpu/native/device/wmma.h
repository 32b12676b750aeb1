// mma.h: warp matrix multiply. A lane holds M*N/32 consecutive elements of a tile in row-major order; CUDA
// leaves the layout open, so code that depends on it is wrong everywhere. Accumulation is in float (double
// for double), each output rounded once: the order of the sums differs from the tensor cores'.
#pragma once

namespace nvcuda {
namespace wmma {
struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}
// tf32 keeps 10 bits of the mantissa: round to nearest, ties away.
inline float __float_to_tf32(float x) {
  return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
}

template <class T>
struct Element {
  using type = T;
};
template <>
struct Element<precision::tf32> {
  using type = float;
};

template <class Use, int M, int N, int K>
struct TileShape;
template <int M, int N, int K>
struct TileShape<matrix_a, M, N, K> {
  enum { kRows = M, kColumns = K };
};
template <int M, int N, int K>
struct TileShape<matrix_b, M, N, K> {
  enum { kRows = K, kColumns = N };
};
template <int M, int N, int K>
struct TileShape<accumulator, M, N, K> {
  enum { kRows = M, kColumns = N };
};

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  using element_type = typename Element<T>::type;
  using storage_element_type = element_type;
  enum {
    kRows = TileShape<Use, M, N, K>::kRows,
    kColumns = TileShape<Use, M, N, K>::kColumns,
    num_elements = kRows * kColumns / 32,
    num_storage_elements = num_elements
  };
  element_type x[num_elements];
};

template <class Fragment, class T>
inline void fill_fragment(Fragment& f, T value) {
  for (auto& element : f.x) element = static_cast<typename Fragment::element_type>(value);
}

template <class Fragment>
inline void load_tile(Fragment& f, const typename Fragment::element_type* from, unsigned stride, bool rows,
                      int line) {
  kw_warp_meet(kKwConverge, kw_device::kFullMask, 0, line);
  for (unsigned i = 0; i < Fragment::num_elements; i++) {
    const unsigned at = kw_device::lane() * Fragment::num_elements + i;
    const unsigned r = at / Fragment::kColumns, c = at % Fragment::kColumns;
    f.x[i] = from[rows ? r * stride + c : c * stride + r];
  }
}
template <class Use, int M, int N, int K, class T, class Layout>
inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& f, const typename Element<T>::type* from,
                             unsigned stride, KW_LINE) {
  load_tile(f, from, stride, std::is_same<Layout, row_major>::value, line);
}
template <int M, int N, int K, class T>
inline void load_matrix_sync(fragment<accumulator, M, N, K, T>& f, const T* from, unsigned stride,
                             layout_t layout, KW_LINE) {
  load_tile(f, from, stride, layout == mem_row_major, line);
}
template <int M, int N, int K, class T>
inline void store_matrix_sync(T* to, const fragment<accumulator, M, N, K, T>& f, unsigned stride,
                              layout_t layout, KW_LINE) {
  using Fragment = fragment<accumulator, M, N, K, T>;
  for (unsigned i = 0; i < Fragment::num_elements; i++) {
    const unsigned at = kw_device::lane() * Fragment::num_elements + i;
    const unsigned r = at / N, c = at % N;
    to[layout == mem_row_major ? r * stride + c : c * stride + r] = f.x[i];
  }
  kw_warp_meet(kKwConverge, kw_device::kFullMask, 0, line);
}

// Every lane brings its part of a and b, then computes its own outputs from the whole tiles.
template <int M, int N, int K, class T, class TC, class TA, class LayoutA, class LayoutB>
inline void mma_sync(fragment<accumulator, M, N, K, T>& d, const fragment<matrix_a, M, N, K, TA, LayoutA>& a,
                     const fragment<matrix_b, M, N, K, TA, LayoutB>& b,
                     const fragment<accumulator, M, N, K, TC>& c, KW_LINE) {
  using Sum = std::conditional_t<std::is_same<T, double>::value, double,
                                 std::conditional_t<std::is_same<T, int>::value, int, float>>;
  using Operand = typename Element<TA>::type;
  constexpr unsigned kMine = M * N / 32, kA = M * K / 32, kB = K * N / 32;
  struct Part {
    Operand of_a[kA], of_b[kB];
  } mine;
  memcpy(mine.of_a, a.x, sizeof mine.of_a);
  memcpy(mine.of_b, b.x, sizeof mine.of_b);
  const KwGathered all = kw_warp_gather(&mine, sizeof mine, line);
  const auto part = [&all](unsigned lane) {
    return reinterpret_cast<const Part*>(all.bytes + lane * all.stride);
  };
  for (unsigned i = 0; i < kMine; i++) {
    const unsigned at = kw_device::lane() * kMine + i, r = at / N, col = at % N;
    Sum sum = static_cast<Sum>(c.x[i]);
    for (unsigned k = 0; k < K; k++) {
      const unsigned at_a = r * K + k, at_b = k * N + col;
      sum += static_cast<Sum>(part(at_a / kA)->of_a[at_a % kA]) *
             static_cast<Sum>(part(at_b / kB)->of_b[at_b % kB]);
    }
    d.x[i] = static_cast<T>(sum);
  }
}
}  // namespace wmma
}  // namespace nvcuda
