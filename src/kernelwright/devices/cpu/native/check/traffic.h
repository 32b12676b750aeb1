// Models how a GPU would serve the accesses of a warp: sectors of global memory, wavefronts of shared memory.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "access.h"

namespace kw {
// Accesses are matched into warp requests by counting: the n-th execution of one instruction by each lane of
// a warp is one request. That is exact where lanes do not diverge.
class Traffic {
 public:
  static constexpr uint64_t kBlocks = 4;       // of each launch: the first ones stand for all
  static constexpr uint64_t kExecutions = 64;  // of one instruction by one thread of a block; they stand for all

  void add(const Access& access, bool shared, unsigned rank);
  // Adds up what one block did.
  void end_block();
  void report_all() const;

 private:
  struct Instruction {
    const void* pc;
    bool shared, write;
    size_t bytes;
    uint64_t executed = 0;  // lanes of all executions; the others count what was looked at
    uint64_t requests = 0, lanes = 0, units = 0, ideal = 0;
  };
  struct Request {
    unsigned count = 0;
    uintptr_t address[32];
  };
  static void add_global(Instruction& instruction, const Request& request);
  static void add_shared(Instruction& instruction, const Request& request);

  std::vector<Instruction> instructions_;
  std::unordered_map<const void*, uint32_t> index_;
  std::unordered_map<uint64_t, uint32_t> executions_;  // (instruction, thread) -> how often so far
  std::unordered_map<uint64_t, Request> requests_;     // (instruction, warp, execution)
};
}  // namespace kw
