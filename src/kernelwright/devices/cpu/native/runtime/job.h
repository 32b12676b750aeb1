// What the harness asks for: the launches of the plan, and the runs with their regions of memory.
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

// One run, without anything that tells it from others: neither its number nor how many there are.
struct RunSpec {
  std::vector<RegionSpec> regions;
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
  std::vector<SharedSpec> shared_arrays;
  std::vector<LaunchSpec> launches;
};

// What all runs of a job have in common, and then each run in turn; false when there is none left. Where the next part
// begins the kernel keeps: the process that reads the job learns of no run when another one reads that. Of the text
// nothing stays in memory. A malformed job ends the process as the harness's fault.
Job read_job(int fd);
bool read_run(int fd, RunSpec& run);
}  // namespace kw
