// Where a loaded library lies in memory.
#pragma once
#include <cstdint>

namespace kw {
// Addresses of the segments of one loaded library; the thread-local ones are those of the calling OS thread.
struct Library {
  uintptr_t begin = 0, end = 0, tls_begin = 0, tls_end = 0;

  bool contains(uintptr_t address) const { return address - begin < end - begin; }
  // A candidate's thread-local storage is its shared memory: static arrays and the dynamic arena.
  bool is_shared_memory(uintptr_t address) const { return address - tls_begin < tls_end - tls_begin; }
};

// The library that `inside` points into.
Library find_library(const void* inside);
}  // namespace kw
