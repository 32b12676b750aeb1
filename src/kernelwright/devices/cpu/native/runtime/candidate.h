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
  // Loads the shared object. Failing to load is the harness's fault: the build has checked it.
  explicit Candidate(const char* path);

  // Kernel `name`, whose parameters fit the arguments of the launch; else the process ends as a failed launch.
  const KwKernel* kernel_for(const LaunchSpec& launch) const;

  // Where it lies, with the shared memory of the calling OS thread.
  Library library() const;

  // Where this OS thread's dynamic shared memory begins.
  const void* dynamic_shared() const;

 private:
  void* library_;
  const KwKernel* kernels_;
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
