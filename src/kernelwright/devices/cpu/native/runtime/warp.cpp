#include "warp.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "block.h"
#include "hooks.h"
#include "print.h"
#include "report.h"

namespace kw {
namespace {
constexpr size_t kGatherBytes = 256;  // what one lane can bring; wmma's largest tiles need 64
}

LaneSet* Warp::set_for(unsigned mask, unsigned lane) {
  LaneSet* idle = nullptr;
  for (unsigned i = 0; i < sets_used; i++) {
    LaneSet& set = sets[i];
    if (set.mask == mask && !(set.arrived >> lane & 1)) return &set;
    if (set.arrived == 0 && set.unread == 0) idle = &set;
  }
  if (sets_used < kMaxSets) idle = &sets[sets_used++];
  if (idle == nullptr) return nullptr;
  idle->mask = mask;
  idle->arrived = idle->unread = idle->generation = 0;
  return idle;
}

const KwLanes* Block::meet(int meeting, unsigned mask, uint64_t value, int line) {
  on_wait();
  const unsigned rank = running_, lane = rank & 31;
  Warp& warp = warps_[rank / 32];
  if (!(mask >> lane & 1)) {
    if (!noted_divergence_) {
      noted_divergence_ = true;
      report_finding("bad-mask", "line %d: lane %u calls a warp function with mask %08x, which leaves it out",
                     line, lane, mask);
    }
    mask |= 1u << lane;
  }
  LaneSet* set = warp.set_for(mask, lane);
  if (set == nullptr) {
    report_finding("divergent-warp", "line %d: more than %u groups of lanes of one warp wait at once", line,
                   Warp::kMaxSets);
    abandon();
  }
  if (set->arrived == 0) {
    set->meeting = meeting;
    set->line = line;
  } else if (set->meeting != meeting && !noted_divergence_) {
    noted_divergence_ = true;
    report_finding("divergent-warp",
                   "line %d: warp %u: lanes meet in different warp functions, here and at line %d", line,
                   rank / 32, set->line);
  }
  KwLanes& lanes = set->lanes[set->generation & 1];
  set->arrived |= 1u << lane;
  lanes.value[lane] = value;
  Thread& thread = threads_[rank];
  thread.line = line;
  if (!try_release(rank / 32, *set, static_cast<int>(rank))) {
    thread.state = State::kAtMeeting;
    go_on(&thread.stack_pointer);
  }
  set->unread--;
  return &lanes;
}

bool Block::try_release(unsigned warp_index, LaneSet& set, int except) {
  Warp& warp = warps_[warp_index];
  const unsigned needed = set.mask & warp.live;
  if ((set.arrived & needed) != needed) return false;
  set.lanes[set.generation & 1].arrived = set.arrived;
  if (set.meeting == kKwSync) warp.sync_epoch++;
  for (unsigned rest = set.arrived; rest != 0; rest &= rest - 1) {
    const unsigned rank = warp_index * 32 + static_cast<unsigned>(__builtin_ctz(rest));
    if (static_cast<int>(rank) != except) ready_lanes_.push(rank);
  }
  set.unread += static_cast<unsigned>(__builtin_popcount(set.arrived));
  set.arrived = 0;
  set.generation++;
  return true;
}

KwGathered Block::gather(const void* mine, size_t bytes, int line) {
  if (bytes > kGatherBytes) harness_fault("a warp gather of %zu bytes a lane", bytes);
  gathered_.resize(warps_.size() * 2 * 32 * kGatherBytes);
  const unsigned rank = running_, lane = rank & 31;
  LaneSet* set = warps_[rank / 32].set_for(~0u, lane);
  const size_t turn = set == nullptr ? 0 : set->generation & 1;
  unsigned char* buffer = gathered_.data() + (rank / 32 * 2 + turn) * 32 * kGatherBytes;
  memcpy(buffer + lane * kGatherBytes, mine, bytes);
  meet(kKwGather, ~0u, 0, line);
  return {buffer, kGatherBytes};
}

// CUDA's __activemask names the lanes that happen to be converged. Here a lane waits until nothing else in
// the block can run; the lanes of its warp that wait at the same line by then are the converged ones.
unsigned Block::active_mask(int line) {
  on_wait();
  Thread& thread = threads_[running_];
  thread.state = State::kAtActiveMask;
  thread.line = line;
  go_on(&thread.stack_pointer);
  return thread.active_mask;
}

bool Block::release_active_masks() {
  bool released = false;
  for (unsigned first = 0; first < threads_total_; first += 32) {
    const unsigned end = std::min(first + 32, threads_total_);
    // The earliest line of a warp goes first: its lanes may yet join those that wait further down.
    int line = INT_MAX;
    for (unsigned t = first; t < end; t++) {
      if (threads_[t].state == State::kAtActiveMask) line = std::min(line, threads_[t].line);
    }
    unsigned mask = 0;
    for (unsigned t = first; t < end; t++) {
      const bool waits = threads_[t].state == State::kAtActiveMask && threads_[t].line == line;
      mask |= static_cast<unsigned>(waits) << (t - first);
    }
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
      const unsigned rank = first + static_cast<unsigned>(__builtin_ctz(rest));
      threads_[rank].active_mask = mask;
      ready_lanes_.push(rank);
    }
    released |= mask != 0;
  }
  return released;
}

void Block::copy_async(const AsyncCopy& copy) {
  copies_.resize(threads_total_);
  copies_[running_].open.push_back(copy);
}

void Block::copy_commit() {
  copies_.resize(threads_total_);
  CopyQueue& queue = copies_[running_];
  queue.committed.push_back(std::move(queue.open));
  queue.open.clear();
}

void Block::copy_wait(size_t keep) {
  copies_.resize(threads_total_);
  std::vector<std::vector<AsyncCopy>>& committed = copies_[running_].committed;
  const size_t done = committed.size() > keep ? committed.size() - keep : 0;
  for (size_t i = 0; i < done; i++) {
    for (const AsyncCopy& copy : committed[i]) {
      const size_t read = copy.bytes - copy.zero_fill;
      on_copy(copy);
      memcpy(copy.to, copy.from, read);
      memset(static_cast<char*>(copy.to) + read, 0, copy.zero_fill);
    }
  }
  committed.erase(committed.begin(), committed.begin() + static_cast<std::ptrdiff_t>(done));
}

bool Block::is_runtime_memory(uintptr_t address) const {
  const uintptr_t warps = reinterpret_cast<uintptr_t>(warps_.data());
  const uintptr_t gathered = reinterpret_cast<uintptr_t>(gathered_.data());
  return address - warps < warps_.size() * sizeof(Warp) || address - gathered < gathered_.size();
}
}  // namespace kw

// ---- what device code calls -------------------------------------------------------------------------

extern "C" {
void kw_barrier(int line) { kw::Block::current()->barrier(line); }
int kw_barrier_vote(int vote, int predicate, int line) {
  return kw::Block::current()->barrier_vote(vote, predicate, line);
}
const KwLanes* kw_warp_meet(int meeting, unsigned mask, uint64_t value, int line) {
  return kw::Block::current()->meet(meeting, mask, value, line);
}
KwGathered kw_warp_gather(const void* mine, size_t bytes, int line) {
  return kw::Block::current()->gather(mine, bytes, line);
}
unsigned kw_active_mask(int line) { return kw::Block::current()->active_mask(line); }
void kw_bad_shuffle(unsigned source, int line) {
  kw::report_finding("bad-shuffle", "line %d: lane %u reads from lane %u, which does not take part", line,
                     kw::Block::current()->running() & 31, source);
}
long long kw_clock() { return kw::Block::current()->clock(); }
void kw_copy_async(void* to, const void* from, size_t bytes, size_t zero_fill) {
  kw::Block::current()->copy_async({to, from, bytes, zero_fill, __builtin_return_address(0)});
}
void kw_copy_commit() { kw::Block::current()->copy_commit(); }
void kw_copy_wait(unsigned keep) { kw::Block::current()->copy_wait(keep); }
int kw_print(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = kw::print(format, arguments, __builtin_return_address(0));
  va_end(arguments);
  return length;
}
void kw_assert_failed(const char* condition, int line) {
  const uint3 b = kw_thread.block, t = kw_thread.thread;
  kw::report_finding("assert", "line %d: assertion failed: %s, block (%u,%u,%u) thread (%u,%u,%u)", line,
                     condition, b.x, b.y, b.z, t.x, t.y, t.z);
  kw::Block::current()->abandon();
}
#ifndef KW_CHECK
void kw_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void kw_atomic_access(const void*, size_t, const void*) {}
#endif
}
