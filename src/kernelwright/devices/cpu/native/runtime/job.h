// What the harness asks for: regions of memory, the launches of the plan, and the runs.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace kw {
// Part of a file that holds one buffer. `data_offset` is where the buffer begins in the mapping; what is left
// before and behind it the harness has filled with canaries, and a guard page stands on each side.
struct RegionSpec {
  std::string name;
  std::string dtype;
  int fd;
  uint64_t file_offset, map_bytes, data_offset, bytes;
  unsigned element_bytes;
  bool writable;
  bool must_be_written;  // an output: every element
};

// A static __shared__ array, placed within the candidate's thread-local storage.
struct SharedSpec {
  std::string name;
  uint64_t offset, bytes;
};

struct ArgumentSpec {
  bool is_buffer;
  unsigned slot;      // of a buffer: which of the run's bindings
  std::string dtype;  // of a scalar
  std::string value;
};

struct LaunchSpec {
  std::string kernel;
  unsigned grid[3], block[3];
  uint64_t dynamic_shared_bytes;
  std::vector<ArgumentSpec> arguments;
};

struct Fill {
  unsigned region;
  uint64_t pattern;
};
struct Copy {
  unsigned to, from;
};

struct RunSpec {
  unsigned order;  // 0 forward, 1 reverse, 2 random
  uint64_t seed;
  long long clock;                 // what clock64() begins at
  std::vector<unsigned> bindings;  // slot -> region
  std::vector<Fill> fills;
  std::vector<Copy> copies;
};

struct Job {
  unsigned threads = 1;
  uint64_t stack_bytes = 0, memory_bytes = 0, cpu_seconds = 0;
  bool metrics = false;
  uint64_t arena_offset = 0, shared_bytes = 0;  // of the candidate's thread-local storage
  std::vector<RegionSpec> regions;
  std::vector<SharedSpec> shared_arrays;
  std::vector<LaunchSpec> launches;
  std::vector<RunSpec> runs;
};

// Reads a job from a file descriptor. A malformed job ends the process as the harness's fault.
Job read_job(int fd);
}  // namespace kw
