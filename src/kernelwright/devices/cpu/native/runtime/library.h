// Where a loaded candidate and its shared memory lie.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kw {
// A range of addresses, `end` not included.
struct Range {
  uintptr_t begin = 0, end = 0;

  bool contains(uintptr_t address) const { return address - begin < end - begin; }
  size_t bytes() const { return end - begin; }
};

// All segments of the library that `inside` points into.
Range find_library(const void* inside);
}  // namespace kw
