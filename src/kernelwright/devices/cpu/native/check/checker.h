// The checked mode: every load and store of the kernel passes through here, before it is performed.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "../device/abi.h"
#include "../runtime/block.h"
#include "../runtime/candidate.h"
#include "../runtime/job.h"
#include "../runtime/library.h"
#include "../runtime/memory.h"
#include "shadow.h"
#include "traffic.h"

namespace kw {
class Checker final : public ConflictSink {
 public:
  void prepare(const Job& job, const Candidate& candidate);
  void begin_run(const RunSpec& run, const Memory& memory);
  void end_run();

  void begin_launch(size_t dynamic_shared_bytes);
  void begin_block(const Block& block, uint64_t index);
  void end_block();
  void barrier();
  // A wait, or the end of a thread: a store that was pending has been performed by now.
  void settle();
  void fence() { fenced_ = true; }

  void access(const Access& access, bool sized);
  void atomic(const Access& access);
  [[noreturn]] void beyond_object(const void* pc);

  void conflict(const Access& access, const Conflict& conflict) override;
  void overlapping_stores(const Access& access, int other, bool shared) override;

 private:
  struct PendingStore {
    bool active = false;
    Access access;
    unsigned char old[16];
    int first, second;
    bool shared;
  };
  bool is_private(const Access& access) const;
  bool is_local(const Access& access) const;
  bool is_guard(const Access& access) const;
  bool in_shared(const Access& access, size_t& offset);
  BufferShadow* buffer_at(uintptr_t address);
  Moment now() const;
  BufferShadow::When when() const;
  bool first_time(const void* pc, Fault fault);
  void fault(const Access& access, Fault fault, const char* what, int other);
  [[noreturn]] void outside(const Access& access, Fault kind);

  const Block* block_ = nullptr;
  const Memory* memory_ = nullptr;
  Range library_, storage_;
  uintptr_t arena_ = 0;
  size_t dynamic_bytes_ = 0;
  std::vector<SharedSpec> arrays_;
  SharedShadow shared_;
  std::vector<BufferShadow> buffers_;
  Traffic traffic_;
  bool metrics_ = false, fenced_ = false;
  uint32_t epoch_ = 0, block_number_ = 0, first_of_launch_ = 1;
  uint64_t block_of_launch_ = 0;
  PendingStore pending_;
  std::map<std::pair<const void*, Fault>, unsigned> seen_;
};

// One a process: the compiler's instrumentation calls plain functions.
Checker& checker();
}  // namespace kw
