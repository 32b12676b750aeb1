#include "grid.h"

#include <algorithm>

#include "crash.h"
#include "hooks.h"

namespace kw {
Grid::Grid(unsigned threads, size_t stack_bytes) : stack_bytes_(stack_bytes) {
  for (unsigned i = 0; i < threads; i++) blocks_.push_back(std::make_unique<Block>());
  busy_ = threads - 1;
  for (unsigned i = 1; i < threads; i++) threads_.emplace_back(&Grid::worker, this, i);
  // Only a started thread has made the system calls that are refused later on.
  wait();
}

Grid::~Grid() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closing_ = true;
  }
  begin_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool Grid::run(const Launch& launch) {
  const uint64_t total = launch.blocks();
  const auto all = static_cast<unsigned>(blocks_.size());
  on_launch(launch.dynamic_shared_bytes);
  launch_ = &launch;
  next_ = 0;
  stop_ = false;
  // Chunks small enough to even out unequal blocks, large enough to keep the counter cold.
  chunk_ = std::max<uint64_t>(1, total / (all * 8ull));
  const auto helpers = static_cast<unsigned>(std::min<uint64_t>(all, total)) - 1;
  start(helpers);
  run_blocks(0);
  wait();
  return !stop_;
}

void Grid::on_every_thread(const std::function<void(unsigned index)>& task) {
  task_ = &task;
  start(static_cast<unsigned>(threads_.size()));
  task(0);
  wait();
  task_ = nullptr;
}

void Grid::warm_up(const Launch& launch) {
  on_every_thread([&](unsigned index) {
    blocks_[index]->prepare(launch, stack_bytes_);
    blocks_[index]->run(0);
  });
}

void Grid::start(unsigned helpers) {
  if (helpers == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  wanted_ = busy_ = helpers;
  round_++;
  begin_.notify_all();
}

void Grid::wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  end_.wait(lock, [this] { return busy_ == 0; });
}

void Grid::worker(unsigned index) {
  catch_crashes_on_this_thread();
  uint64_t seen = 0;
  std::unique_lock<std::mutex> lock(mutex_);
  if (--busy_ == 0) end_.notify_one();
  for (;;) {
    begin_.wait(lock, [&] { return closing_ || (round_ != seen && index <= wanted_); });
    if (closing_) return;
    seen = round_;
    lock.unlock();
    if (task_ != nullptr) {
      (*task_)(index);
    } else {
      run_blocks(index);
    }
    lock.lock();
    if (--busy_ == 0) end_.notify_one();
  }
}

void Grid::run_blocks(unsigned index) {
  Block& block = *blocks_[index];
  block.prepare(*launch_, stack_bytes_);
  const uint64_t total = launch_->blocks();
  for (;;) {
    const uint64_t first = next_.fetch_add(chunk_, std::memory_order_relaxed);
    if (first >= total) return;
    for (uint64_t b = first; b < std::min(total, first + chunk_); b++) {
      if (stop_.load(std::memory_order_relaxed)) return;
      // Blocks always start in order: kernels may wait for blocks before them, as on the GPU.
      if (!block.run(b)) stop_ = true;
    }
  }
}

bool Grid::is_stack_guard(const void* address) const {
  return std::any_of(blocks_.begin(), blocks_.end(),
                     [address](const std::unique_ptr<Block>& b) { return b->stacks().in_guard(address); });
}
}  // namespace kw
