// Runs the threads of one block at a time. Each CUDA thread is a fiber that switches only where it must wait;
// threads that never wait run back to back on one stack.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "../device/abi.h"
#include "fiber.h"
#include "warp.h"

namespace kw {
enum class Order { kForward, kReverse, kRandom };

// One kernel launch, as a block needs it.
struct Launch {
  const KwKernel* kernel;
  void** arguments;
  dim3 grid;
  dim3 block;
  size_t dynamic_shared_bytes;
  Order order;
  uint64_t seed;
  long long clock;

  unsigned threads() const { return block.x * block.y * block.z; }
  uint64_t blocks() const { return static_cast<uint64_t>(grid.x) * grid.y * grid.z; }
};

struct AsyncCopy {
  void* to;
  const void* from;
  size_t bytes, zero_fill;
  const void* where;  // in the candidate's code
};

class Block {
 public:
  static constexpr unsigned kMaxThreads = 1024;

  // The block that runs on this OS thread; nullptr outside of kernels.
  static Block* current();

  void prepare(const Launch& launch, size_t stack_bytes);
  // Runs block number `index`. False when a finding ended it early.
  bool run(uint64_t index);

  // What device code asks for, on the fiber that asks.
  void barrier(int line);
  int barrier_vote(int vote, int predicate, int line);
  const KwLanes* meet(int meeting, unsigned mask, uint64_t value, int line);
  KwGathered gather(const void* mine, size_t bytes, int line);
  unsigned active_mask(int line);
  long long clock() { return clock_ += 64; }
  void copy_async(const AsyncCopy& copy);
  void copy_commit();
  void copy_wait(size_t keep);

  // Abandons all threads of the block; called on a fiber, does not return to it.
  [[noreturn]] void abandon();

  const Stacks& stacks() const { return stacks_; }
  // Rank of the thread that runs.
  unsigned running() const { return running_; }
  // Where its stack begins: what lies above is not its own.
  uintptr_t stack_top() const { return threads_[running_].stack_top; }
  const Warp& warp_of(unsigned rank) const { return warps_[rank / 32]; }
  // Storage of the runtime that inlined device functions read: no access of the kernel.
  bool is_runtime_memory(uintptr_t address) const;
  const Launch& launch() const { return *launch_; }

 private:
  enum class State : uint8_t { kRunning, kAtBarrier, kAtMeeting, kAtActiveMask, kDone };
  struct Thread {
    void* stack_pointer;
    uintptr_t stack_top;
    uint3 index;
    State state;
    int line;
    unsigned active_mask;
  };
  // First in, first out. At most kMaxThreads threads are ready at once.
  class Queue {
   public:
    void push(unsigned rank) { ranks_[tail_++ % ranks_.size()] = static_cast<uint16_t>(rank); }
    bool empty() const { return head_ == tail_; }
    unsigned pop() { return ranks_[head_++ % ranks_.size()]; }
    void clear() { head_ = tail_ = 0; }

   private:
    size_t head_ = 0, tail_ = 0;
    std::array<uint16_t, 2 * kMaxThreads> ranks_;
  };
  struct CopyQueue {
    std::vector<AsyncCopy> open;
    std::vector<std::vector<AsyncCopy>> committed;
  };

  static void fiber_main();
  void make_current(unsigned rank);
  void start_threads();
  void go_on(void** save);
  void thread_ended(unsigned rank);
  bool release_active_masks();
  void release_barrier(int except);
  void note_divergence();
  bool try_release(unsigned warp, LaneSet& set, int except);
  void shuffle_order();
  uint64_t random();
  void deadlock();

  const Launch* launch_ = nullptr;
  unsigned threads_total_ = 0, live_ = 0, arrived_ = 0, next_new_ = 0, running_ = 0;
  int vote_ = 0, vote_result_ = 0;
  bool failed_ = false, noted_divergence_ = false;
  uint64_t random_state_ = 1;
  long long clock_ = 0;
  void* main_context_ = nullptr;
  void* abandoned_context_ = nullptr;
  Stacks stacks_;
  unsigned stacks_used_ = 0;
  std::vector<unsigned> free_stacks_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<unsigned> order_;
  // Lanes that met go on before anyone else: a warp that shuffles stays within its own stacks, which fit the
  // L1 cache; those of a whole block do not.
  Queue ready_lanes_, ready_;
  std::vector<CopyQueue> copies_;
  std::vector<unsigned char> gathered_;
  size_t gather_stride_ = 0;
};
}  // namespace kw
