// Stacks and the context switch that CUDA threads run on.
#pragma once
#include <cstddef>

extern "C" {
// Saves the running context in *save and goes on with `load`. Written in assembly: 6 registers on x86-64,
// 20 on aarch64.
void kw_switch(void** save, void* load);
}

namespace kw {
// A row of stacks of one size, a guard page below each, made readable and writable when first used.
class Stacks {
 public:
  Stacks() = default;
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  // Room for `count` stacks of `bytes` each (a multiple of the page size).
  void reserve(size_t count, size_t bytes);

  // A context that enters `main` on stack `index` when switched to.
  void* fresh(size_t index, void (*main)());

  // Stack that an address belongs to.
  size_t index_of(const void* address) const;
  bool contains(const void* address) const;
  bool in_guard(const void* address) const;
  size_t bytes() const { return bytes_; }

 private:
  char* base_ = nullptr;
  size_t count_ = 0, bytes_ = 0, opened_ = 0;
  size_t pitch() const;
};
}  // namespace kw
