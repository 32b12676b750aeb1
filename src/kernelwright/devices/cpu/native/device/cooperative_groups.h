// cooperative_groups.h: the block, tiles up to a warp, and coalesced threads.
#pragma once

namespace cooperative_groups {
struct thread_block {
  static void sync(KW_LINE) { kw_barrier(line); }
  static unsigned thread_rank() { return kw_thread.rank; }
  static unsigned size() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

// What every group of lanes of one warp offers; Group gives mask() and, for a rank, the lane.
template <class Group>
struct LaneGroup {
  void sync(KW_LINE) const { kw_warp_meet(kKwSync, self().mask(), 0, line); }
  template <class T>
  T shfl(T v, int rank, KW_LINE) const {
    return kw_device::shuffle(self().mask(), v, self().lane_of(static_cast<unsigned>(rank)), line);
  }
  template <class T>
  T shfl_down(T v, unsigned delta, KW_LINE) const {
    const unsigned rank = self().thread_rank() + delta;
    return kw_device::shuffle(self().mask(), v, rank < self().size() ? self().lane_of(rank) : kw_device::lane(), line);
  }
  template <class T>
  T shfl_up(T v, unsigned delta, KW_LINE) const {
    const unsigned rank = self().thread_rank();
    return kw_device::shuffle(self().mask(), v, rank >= delta ? self().lane_of(rank - delta) : kw_device::lane(), line);
  }
  int any(int p, KW_LINE) const { return kw_device::ballot(self().mask(), p != 0, line) != 0; }
  int all(int p, KW_LINE) const { return kw_device::ballot(self().mask(), p == 0, line) == 0; }

 private:
  const Group& self() const { return static_cast<const Group&>(*this); }
};

template <unsigned N, class Parent = void>
struct thread_block_tile : LaneGroup<thread_block_tile<N, Parent>> {
  static_assert(N <= 32 && (N & (N - 1)) == 0, "tiles up to a warp can run on the cpu device");
  static unsigned first() { return kw_device::lane() & ~(N - 1); }
  static unsigned mask() { return N == 32 ? kw_device::kFullMask : ((1u << (N & 31)) - 1) << first(); }
  static unsigned lane_of(unsigned rank) { return first() + (rank & (N - 1)); }
  static unsigned thread_rank() { return kw_device::lane() & (N - 1); }
  static constexpr unsigned size() { return N; }
  static constexpr unsigned num_threads() { return N; }
  static unsigned meta_group_rank() { return kw_thread.rank / N; }
  static unsigned meta_group_size() { return (thread_block::size() + N - 1) / N; }
  template <class T>
  T shfl_xor(T v, unsigned lanes, KW_LINE) const {
    return kw_device::shuffle(mask(), v, lane_of(thread_rank() ^ lanes), line);
  }
  unsigned ballot(int p, KW_LINE) const { return kw_device::ballot(mask(), p != 0, line) >> first(); }
  template <class T>
  unsigned match_any(T v, KW_LINE) const {
    return __match_any_sync(mask(), v, line) >> first();
  }
};
template <unsigned N, class Group>
inline thread_block_tile<N> tiled_partition(const Group&) {
  return {};
}

struct coalesced_group : LaneGroup<coalesced_group> {
  unsigned members;
  explicit coalesced_group(unsigned mask) : members(mask) {}
  unsigned mask() const { return members; }
  unsigned lane_of(unsigned rank) const {
    unsigned rest = members;
    while (rank--) rest &= rest - 1;
    return static_cast<unsigned>(__builtin_ctz(rest));
  }
  unsigned size() const { return static_cast<unsigned>(__builtin_popcount(members)); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const {
    return static_cast<unsigned>(__builtin_popcount(members & ((1u << kw_device::lane()) - 1)));
  }
};
inline coalesced_group coalesced_threads(KW_LINE) { return coalesced_group(kw_active_mask(line)); }

template <class T>
struct plus {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct less {
  T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T>
struct greater {
  T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T>
struct bit_and {
  T operator()(T a, T b) const { return a & b; }
};
template <class T>
struct bit_or {
  T operator()(T a, T b) const { return a | b; }
};
template <class T>
struct bit_xor {
  T operator()(T a, T b) const { return a ^ b; }
};

template <class Group, class T, class F>
inline T reduce(const Group& group, T value, F combine, KW_LINE) {
  return kw_device::reduce(group.mask(), value, combine, line);
}
template <class Group, class T, class F>
inline T inclusive_scan(const Group& group, T value, F combine, KW_LINE) {
  for (unsigned step = 1; step < group.size(); step *= 2) {
    const T below = group.shfl_up(value, step, line);
    if (group.thread_rank() >= step) value = combine(below, value);
  }
  return value;
}
template <class Group, class T>
inline T exclusive_scan(const Group& group, T value, KW_LINE) {
  return inclusive_scan(group, value, plus<T>(), line) - value;
}
template <class Group>
inline void sync(const Group& group, KW_LINE) {
  group.sync(line);
}
}  // namespace cooperative_groups
