// The loaded candidate: its kernels, and the launches of the plan bound to them.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "../device/abi.h"
#include "job.h"
#include "library.h"
#include "memory.h"

namespace kw {
class Candidate {
 public:
  // Loads the shared object; where that fails the process ends as a failed launch. No code of the candidate runs:
  // the build has looked at all that the loader reads.
  explicit Candidate(const char* path);

  // Kernel `name`, whose parameters fit the arguments of the launch; else the process ends as a failed
  // launch.
  const KwKernel* kernel_for(const LaunchSpec& launch) const;

  // Where its code and constants lie.
  Range library() const { return find_library(kernels_); }

  // The shared memory of the calling OS thread: static arrays and the dynamic arena. It is the candidate's
  // thread-local storage, whose size and the arena's place in it the job tells.
  Range shared_memory(const Job& job) const;
  uintptr_t dynamic_shared() const { return reinterpret_cast<uintptr_t>(arena_()); }

 private:
  void protect_constants() const;

  const KwKernel* kernels_;
  void* (*arena_)();
};

// Values of one launch's arguments and the pointers to them that the kernel's entry unpacks.
class Arguments {
 public:
  Arguments(const LaunchSpec& launch, const RunSpec& run, const Memory& memory);
  void** pointers() { return pointers_.data(); }

 private:
  std::vector<uint64_t> values_;
  std::vector<void*> pointers_;
};
}  // namespace kw
