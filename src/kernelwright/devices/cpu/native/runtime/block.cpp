#include "block.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "hooks.h"
#include "report.h"

extern "C" {
__thread KwThread kw_thread
    __attribute__((tls_model("initial-exec"))) = {{0, 0, 0}, {0, 0, 0}, dim3(1, 1, 1), dim3(1, 1, 1), 0};
// A loaded library's TLS block may not be aligned better than the program's own: this raises it, so that a
// candidate's shared memory begins at a multiple of 1024 bytes.
alignas(1024) __thread char kw_shared_alignment[1] = {1};
}

namespace kw {
namespace {
// Device code carries no context argument: the OS thread knows which block it runs.
thread_local Block* current_block = nullptr;

uint3 unflatten(uint64_t index, const dim3& extent) {
  return {static_cast<unsigned>(index % extent.x), static_cast<unsigned>(index / extent.x % extent.y),
          static_cast<unsigned>(index / (static_cast<uint64_t>(extent.x) * extent.y))};
}
}  // namespace

Block* Block::current() { return current_block; }

void Block::prepare(const Launch& launch, size_t stack_bytes) {
  launch_ = &launch;
  threads_total_ = launch.threads();
  failed_ = noted_divergence_ = false;
  random_state_ = (88172645463325252ull ^ (launch.seed * 0x9E3779B97F4A7C15ull)) | 1;
  threads_.assign(threads_total_, Thread{});
  warps_.resize((threads_total_ + 31) / 32);
  order_.resize(threads_total_);
  for (unsigned t = 0; t < threads_total_; t++) {
    order_[t] = launch.order == Order::kReverse ? threads_total_ - 1 - t : t;
    threads_[t].index = unflatten(t, launch.block);
  }
  copies_.clear();
  stacks_.reserve(threads_total_, stack_bytes);
  kw_thread.block_dim = launch.block;
  kw_thread.grid_dim = launch.grid;
}

bool Block::run(uint64_t index) {
  current_block = this;
  kw_thread.block = unflatten(index, launch_->grid);
  clock_ = launch_->clock;
  live_ = threads_total_;
  arrived_ = next_new_ = 0;
  vote_ = 0;
  ready_.clear();
  ready_lanes_.clear();
  stacks_used_ = 1;
  free_stacks_.clear();
  if (launch_->order == Order::kRandom) shuffle_order();
  for (size_t w = 0; w < warps_.size(); w++) {
    const unsigned lanes = std::min(32u, threads_total_ - static_cast<unsigned>(w) * 32);
    warps_[w].live = lanes == 32 ? ~0u : (1u << lanes) - 1;
    warps_[w].sets_used = 0;
  }
  for (CopyQueue& queue : copies_) {
    queue.open.clear();
    queue.committed.clear();
  }
  on_block_begin(*this, index);
  kw_switch(&main_context_, stacks_.fresh(0, fiber_main));
  on_block_end();
  current_block = nullptr;
  return !failed_;
}

// ---- fibers ---------------------------------------------------------------------------------------

void Block::make_current(unsigned rank) {
  running_ = kw_thread.rank = rank;
  kw_thread.thread = threads_[rank].index;
  threads_[rank].state = State::kRunning;
}

void Block::fiber_main() { current_block->start_threads(); }

void Block::start_threads() {
  const void* top = __builtin_alloca(16);  // the end of this frame: what lies below is the kernel's
  const unsigned my_stack = static_cast<unsigned>(stacks_.index_of(top));
  while (next_new_ < threads_total_) {
    make_current(order_[next_new_++]);
    threads_[running_].stack_top = reinterpret_cast<uintptr_t>(top);
    launch_->kernel->call(launch_->arguments);
    on_wait();
    thread_ended(running_);
  }
  free_stacks_.push_back(my_stack);
  go_on(&abandoned_context_);
}

// Leaves the running fiber, whose context goes to *save, for the next thing that can run.
void Block::go_on(void** save) {
  do {
    Queue& queue = ready_lanes_.empty() ? ready_ : ready_lanes_;
    if (!queue.empty()) {
      const unsigned rank = queue.pop();
      make_current(rank);
      // A thread that released itself goes on: its saved context is an old one.
      if (save != &threads_[rank].stack_pointer) kw_switch(save, threads_[rank].stack_pointer);
      return;
    }
    if (next_new_ < threads_total_) {
      unsigned stack = stacks_used_;
      if (free_stacks_.empty()) {
        stacks_used_++;
      } else {
        stack = free_stacks_.back();
        free_stacks_.pop_back();
      }
      kw_switch(save, stacks_.fresh(stack, fiber_main));
      return;
    }
  } while (live_ > 0 && release_active_masks());
  if (live_ > 0) deadlock();
  kw_switch(save, main_context_);
}

void Block::thread_ended(unsigned rank) {
  threads_[rank].state = State::kDone;
  live_--;
  Warp& warp = warps_[rank / 32];
  warp.live &= ~(1u << (rank & 31));
  for (unsigned i = 0; i < warp.sets_used; i++) {
    if (warp.sets[i].arrived != 0) try_release(rank / 32, warp.sets[i], -1);
  }
  if (live_ > 0 && arrived_ == live_) release_barrier(-1);
}

void Block::abandon() {
  failed_ = true;
  kw_switch(&abandoned_context_, main_context_);
  __builtin_unreachable();
}

void Block::deadlock() {
  std::string who;
  for (unsigned t = 0; t < threads_total_ && who.size() < 400;) {
    const Thread& first = threads_[t];
    unsigned last = t;
    while (last + 1 < threads_total_ && threads_[last + 1].state == first.state &&
           threads_[last + 1].line == first.line) {
      last++;
    }
    const bool done = first.state == State::kDone;
    const char* what = done                               ? "returned"
                       : first.state == State::kAtBarrier ? "wait at __syncthreads"
                                                          : "wait at a warp function";
    char text[160];
    snprintf(text, sizeof text, "%sthreads %u-%u %s", who.empty() ? "" : "; ", t, last, what);
    who += text;
    if (!done) who += " (line " + std::to_string(first.line) + ")";
    t = last + 1;
  }
  const uint3 b = kw_thread.block;
  report_finding("deadlock", "block (%u,%u,%u): no thread can go on: %s", b.x, b.y, b.z, who.c_str());
  failed_ = true;
}

// ---- block barrier --------------------------------------------------------------------------------

void Block::barrier(int line) {
  on_wait();
  const unsigned rank = running_;
  Thread& thread = threads_[rank];
  thread.state = State::kAtBarrier;
  thread.line = line;
  if (++arrived_ == live_) {
    const bool yield = launch_->order == Order::kRandom;
    release_barrier(yield ? -1 : static_cast<int>(rank));
    thread.state = State::kRunning;
    if (!yield) return;
  }
  go_on(&thread.stack_pointer);
}

int Block::barrier_vote(int vote, int predicate, int line) {
  if (arrived_ == 0) vote_ = vote == kKwAnd;
  const bool p = predicate != 0;
  vote_ = vote == kKwCount ? vote_ + p : vote == kKwAnd ? (vote_ && p) : (vote_ || p);
  barrier(line);
  return vote_result_;
}

void Block::release_barrier(int except) {
  if (launch_->order == Order::kRandom) shuffle_order();
  if (!noted_divergence_) note_divergence();
  for (const unsigned t : order_) {
    if (threads_[t].state == State::kAtBarrier && static_cast<int>(t) != except) ready_.push(t);
  }
  arrived_ = 0;
  vote_result_ = vote_;
  on_barrier();
}

void Block::note_divergence() {
  int first = -1, other = -1;
  unsigned at_first = 0, at_other = 0;
  for (const Thread& thread : threads_) {
    if (thread.state != State::kAtBarrier) continue;
    if (first < 0) first = thread.line;
    if (thread.line == first) {
      at_first++;
    } else {
      other = thread.line;
      at_other++;
    }
  }
  const uint3 b = kw_thread.block;
  if (other >= 0) {
    noted_divergence_ = true;
    report_finding(
        "divergent-barrier",
        "line %d: block (%u,%u,%u): %u threads wait at the __syncthreads of this line, %u at line %d", first,
        b.x, b.y, b.z, at_first, at_other, other);
  } else if (live_ < threads_total_) {
    noted_divergence_ = true;
    report_finding("note-early-exit",
                   "line %d: block (%u,%u,%u): %u of %u threads returned before this __syncthreads", first,
                   b.x, b.y, b.z, threads_total_ - live_, threads_total_);
  }
}

void Block::shuffle_order() {
  for (unsigned i = threads_total_ - 1; i > 0; i--) std::swap(order_[i], order_[random() % (i + 1)]);
}

uint64_t Block::random() {  // xorshift64 (Marsaglia 2003)
  random_state_ ^= random_state_ << 13;
  random_state_ ^= random_state_ >> 7;
  random_state_ ^= random_state_ << 17;
  return random_state_;
}
}  // namespace kw
