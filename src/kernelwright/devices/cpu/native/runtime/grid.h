// Runs the blocks of a launch over OS threads.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "block.h"

namespace kw {
class Grid {
 public:
  // `threads` OS threads, the caller's one included. Checked mode uses one.
  Grid(unsigned threads, size_t stack_bytes);
  ~Grid();
  Grid(const Grid&) = delete;
  Grid& operator=(const Grid&) = delete;

  // Runs all blocks; false when a finding ended the launch early.
  bool run(const Launch& launch);

  // Runs block 0 of a launch of our own on every OS thread.
  void warm_up(const Launch& launch);

  // Calls `task` once on every OS thread that runs blocks.
  void on_every_thread(const std::function<void(unsigned index)>& task);

  // True when `address` is a guard page of some thread's stack: the thread used too much stack.
  bool is_stack_guard(const void* address) const;

 private:
  void worker(unsigned index);
  void run_blocks(unsigned index);
  void start(unsigned helpers);
  void wait();

  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::thread> threads_;
  const size_t stack_bytes_;
  const Launch* launch_ = nullptr;
  const std::function<void(unsigned)>* task_ = nullptr;  // instead of the blocks of a launch
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> stop_{false};
  uint64_t chunk_ = 1;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  uint64_t round_ = 0;
  unsigned wanted_ = 0, busy_ = 0;
  bool closing_ = false;
};
}  // namespace kw
