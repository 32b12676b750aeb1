#include "checker.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "../runtime/report.h"

namespace kw {
namespace {
constexpr size_t kArenaBytes = 228 << 10;  // device/dynamic_shared.s

const char* name_of(Fault fault) {
  switch (fault) {
    case Fault::kOutOfBounds: return "out-of-bounds";
    case Fault::kMisaligned: return "misaligned";
    case Fault::kRace: return "race";
    case Fault::kRaceInWarp: return "race-in-warp";
    case Fault::kUninitialisedShared: return "uninitialised-shared";
    case Fault::kUninitialisedGlobal: return "uninitialised-global";
    case Fault::kWriteToInput: return "write-to-input";
    case Fault::kWriteToConstant: return "write-to-constant";
  }
  return "unknown";
}

bool within(const Range& range, const Access& access) {
  return range.contains(access.address) && access.bytes <= range.end - access.address;
}

Range built_in_variables() {
  const auto begin = reinterpret_cast<uintptr_t>(&kw_thread);
  return {begin, begin + sizeof kw_thread};
}
}  // namespace

Checker& checker() {
  static Checker instance;
  return instance;
}

// ---- a run ----------------------------------------------------------------------------------------

void Checker::prepare(const Job& job, const Candidate& candidate) {
  metrics_ = job.metrics;
  arrays_ = job.shared_arrays;
  arena_ = candidate.dynamic_shared();
  storage_ = candidate.shared_memory(job);
  library_ = candidate.library();
  shared_.resize(storage_.bytes());
  report("base\t%llu", static_cast<unsigned long long>(library_.begin));
}

void Checker::begin_run(const RunSpec& run, const Memory& memory) {
  buffers_.clear();
  for (const unsigned region : run.bindings) {
    const RegionSpec& spec = memory.spec(region);
    const bool filled = std::any_of(run.fills.begin(), run.fills.end(),
                                    [region](const Fill& fill) { return fill.region == region; });
    buffers_.emplace_back(spec, reinterpret_cast<uintptr_t>(memory.data(region)), !filled);
  }
  memory_ = &memory;
  fenced_ = false;
}

void Checker::end_run() {
  if (failures() > 0) return;  // the launch ended early: what is missing is a consequence
  for (const BufferShadow& buffer : buffers_) {
    const size_t missing = buffer.unwritten();
    if (buffer.spec().must_be_written && missing > 0) {
      report_finding("unwritten", "%zu of %zu values of %s were never written", missing, buffer.elements(),
                     buffer.spec().name.c_str());
    }
  }
  traffic_.report_all();
}

void Checker::begin_launch(size_t dynamic_shared_bytes) {
  dynamic_bytes_ = dynamic_shared_bytes;
  first_of_launch_ = block_number_ + 1;
  fenced_ = false;
}

void Checker::begin_block(const Block& block, uint64_t index) {
  block_ = &block;
  block_of_launch_ = index;
  block_number_++;
  shared_.begin_block(++epoch_);
}

void Checker::end_block() {
  settle();
  if (metrics_ && block_of_launch_ < Traffic::kBlocks) traffic_.end_block();
  block_ = nullptr;
}

void Checker::barrier() {
  settle();
  epoch_++;
}

// ---- accesses -------------------------------------------------------------------------------------

Moment Checker::now() const {
  return {epoch_, block_->warp_of(block_->running()).sync_epoch, static_cast<uint16_t>(block_->running())};
}

BufferShadow::When Checker::when() const { return {now(), block_number_, first_of_launch_, fenced_}; }

// Local memory, and what the runtime hands out to be read: no memory that threads of the kernel share.
bool Checker::is_private(const Access& access) const {
  return block_ == nullptr || is_local(access) ||
         (!access.write && (within(built_in_variables(), access) || block_->is_runtime_memory(access.address) ||
                            is_guard(access)));
}

// Within the frames of the functions that run: what lies below has been left, what lies above is the runtime's.
bool Checker::is_local(const Access& access) const {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return within({here, block_->stack_top()}, access);
}

// g++ gives a __shared__ array of a class with constructors (__half) a guard of its own beside it, though its
// default constructor does nothing, and looks at its first byte. As it is not 0, nobody ever writes it.
bool Checker::is_guard(const Access& access) const {
  if (access.bytes != 1 || !storage_.contains(access.address)) return false;
  const size_t offset = access.address - storage_.begin;
  return *reinterpret_cast<const unsigned char*>(access.address) == kSharedPoison &&
         std::any_of(arrays_.begin(), arrays_.end(), [offset](const SharedSpec& array) {
           return array.name.compare(0, 4, "_ZGV") == 0 && offset == array.offset && array.bytes == 8;
         });
}

void Checker::access(const Access& access, bool sized) {
  settle();
  if (access.bytes == 0 || is_private(access)) return;
  if (sized && access.address % access.bytes != 0) {
    fault(access, Fault::kMisaligned, "not aligned to its size", -1);
  }
  const bool counted = metrics_ && block_of_launch_ < Traffic::kBlocks;
  size_t offset = 0;
  if (in_shared(access, offset)) {
    if (counted) traffic_.add(access, true, block_->running());
    shared_.access(offset, access, now(), *this);
    return;
  }
  if (BufferShadow* buffer = buffer_at(access.address)) {
    if (access.end() > buffer->end()) {
      fault(access, Fault::kOutOfBounds, "across the end of a buffer", -1);
      return;
    }
    if (access.write && !buffer->spec().writable) outside(access, Fault::kWriteToInput);
    if (counted) traffic_.add(access, false, block_->running());
    buffer->access(access, when(), *this);
    return;
  }
  if (library_.contains(access.address)) {  // constants and tables
    if (access.write) fault(access, Fault::kWriteToConstant, "to a __constant__ variable", -1);
    return;
  }
  outside(access, Fault::kOutOfBounds);
}

void Checker::atomic(const Access& access) {
  settle();
  if (is_private(access)) return;
  size_t offset = 0;
  if (in_shared(access, offset)) {
    shared_.atomic(offset, access, now(), *this);
    return;
  }
  BufferShadow* buffer = buffer_at(access.address);
  if (buffer == nullptr || access.end() > buffer->end()) outside(access, Fault::kOutOfBounds);
  if (!buffer->spec().writable) outside(access, Fault::kWriteToInput);
  buffer->atomic(access, when(), *this);
}

// Whether the access is to shared memory, where its shadow begins; an access beside every array ends the
// block.
bool Checker::in_shared(const Access& access, size_t& offset) {
  if (!storage_.contains(access.address)) return false;
  offset = access.address - storage_.begin;
  if (access.address - arena_ < kArenaBytes) {
    if (access.end() > arena_ + dynamic_bytes_) {
      char what[120];
      snprintf(what, sizeof what, "past the %zu bytes of dynamic shared memory of the launch",
               dynamic_bytes_);
      fault(access, Fault::kOutOfBounds, what, -1);
      Block::current()->abandon();
    }
    return true;
  }
  const bool inside = std::any_of(arrays_.begin(), arrays_.end(), [&](const SharedSpec& array) {
    return offset - array.offset < array.bytes && offset + access.bytes <= array.offset + array.bytes;
  });
  if (!inside) {
    fault(access, Fault::kOutOfBounds, "outside every __shared__ array", -1);
    Block::current()->abandon();
  }
  return true;
}

BufferShadow* Checker::buffer_at(uintptr_t address) {
  const auto found = std::find_if(buffers_.begin(), buffers_.end(),
                                  [address](const BufferShadow& buffer) { return buffer.contains(address); });
  return found == buffers_.end() ? nullptr : &*found;
}

// ---- what was found -------------------------------------------------------------------------------

void Checker::conflict(const Access& access, const Conflict& conflict) {
  fault(access, conflict.fault, conflict.what, conflict.other);
}

void Checker::overlapping_stores(const Access& access, int other, bool shared) {
  if (access.bytes > sizeof pending_.old) return;
  pending_ = {true, access, {}, other, static_cast<int>(block_->running()), shared};
  memcpy(pending_.old, reinterpret_cast<const void*>(access.address), access.bytes);
}

void Checker::settle() {
  if (!pending_.active) return;
  pending_.active = false;
  const Access& access = pending_.access;
  // Storing the same value twice is how threads agree on a flag: no fault.
  if (memcmp(reinterpret_cast<const void*>(access.address), pending_.old, access.bytes) == 0) return;
  if (!first_time(access.pc, Fault::kRace)) return;
  const uint3 b = kw_thread.block;
  report_finding("race",
                 "@%p two different stores of %zu bytes to %s memory, no order between, block (%u,%u,%u) "
                 "threads %d and %d",
                 access.pc, access.bytes, pending_.shared ? "shared" : "global", b.x, b.y, b.z,
                 pending_.first, pending_.second);
}

bool Checker::first_time(const void* pc, Fault fault) { return seen_[{pc, fault}]++ == 0; }

void Checker::fault(const Access& access, Fault fault, const char* what, int other) {
  if (!first_time(access.pc, fault)) return;
  char with[48] = "";
  if (other >= 0) snprintf(with, sizeof with, ", other thread %d", other);
  const uint3 b = kw_thread.block, t = kw_thread.thread;
  report_finding(name_of(fault), "@%p %s of %zu bytes %s, block (%u,%u,%u) thread (%u,%u,%u)%s", access.pc,
                 access.write ? "write" : "read", access.bytes, what, b.x, b.y, b.z, t.x, t.y, t.z, with);
}

void Checker::beyond_object(const void* pc) {
  settle();
  const uint3 b = kw_thread.block, t = kw_thread.thread;
  report_finding(name_of(Fault::kOutOfBounds),
                 "@%p beyond the variable that is named, block (%u,%u,%u) thread (%u,%u,%u)", pc, b.x, b.y,
                 b.z, t.x, t.y, t.z);
  Block::current()->abandon();
}

// An access that must not be performed: reports it and ends the block.
void Checker::outside(const Access& access, Fault kind) {
  char where[160];
  const auto* address = reinterpret_cast<const void*>(access.address);
  if (block_->stacks().contains(address)) {
    snprintf(where, sizeof where, "of local memory that is not the thread's own, or not any more");
  } else if (within(built_in_variables(), access)) {
    snprintf(where, sizeof where, "to threadIdx, blockIdx, blockDim or gridDim");
  } else {
    memory_->describe(address, where, sizeof where);
  }
  fault(access, kind, where, -1);
  Block::current()->abandon();
}
}  // namespace kw
