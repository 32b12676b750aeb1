// What is known of every byte of shared memory and every element of the buffers.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "../runtime/job.h"
#include "access.h"

namespace kw {
// A race or an uninitialised read that an access ran into; `other` is the rank of the other thread, or -1.
struct Conflict {
  Fault fault;
  const char* what;
  int other;
};

// Who receives what a shadow finds.
class ConflictSink {
 public:
  virtual void conflict(const Access& access, const Conflict& conflict) = 0;
  // Two threads store to the same place: a fault only if the values differ, which is known after the store.
  virtual void overlapping_stores(const Access& access, int other, bool shared) = 0;

 protected:
  ~ConflictSink() = default;
};

// Shared memory of the running block: a cell for every 4 bytes, until smaller accesses are seen.
class SharedShadow {
 public:
  void resize(size_t bytes) { cells_.assign((bytes + granule_ - 1) / granule_, Cell{}); }
  // Cells older than this were last touched by another block.
  void begin_block(uint32_t first_epoch) { first_epoch_ = first_epoch; }

  void access(size_t offset, const Access& access, const Moment& now, ConflictSink& sink);
  void atomic(size_t offset, const Access& access, const Moment& now, ConflictSink& sink);

 private:
  struct Cell {
    Moment write;
    Readers readers;
    bool atomic = false;
  };
  // The cells of an access; makes cells smaller when the access does not cover whole ones.
  std::pair<size_t, size_t> cells_of(size_t offset, size_t bytes);
  void read(Cell& cell, const Access& access, const Moment& now, ConflictSink& sink);
  void store(Cell& cell, const Access& access, const Moment& now, ConflictSink& sink, bool& overlap);

  std::vector<Cell> cells_;
  size_t granule_ = 4;
  uint32_t first_epoch_ = 1;
};

// One buffer: a cell an element of at most 4 bytes.
class BufferShadow {
 public:
  // `initialised`: the buffer has contents before the first launch.
  BufferShadow(const RegionSpec& spec, uintptr_t begin, bool initialised);

  bool contains(uintptr_t address) const { return address - begin_ < bytes_; }
  uintptr_t end() const { return begin_ + bytes_; }
  const RegionSpec& spec() const { return *spec_; }

  // `block` numbers blocks over all launches of a run; blocks before `launch` ran in earlier launches.
  // With `fenced` some thread used __threadfence, after which blocks may read each other's stores.
  struct When {
    Moment now;
    uint32_t block;
    uint32_t launch;
    bool fenced;
  };
  void access(const Access& access, const When& when, ConflictSink& sink);
  void atomic(const Access& access, const When& when, ConflictSink& sink);
  size_t unwritten() const;
  size_t elements() const { return cells_.size(); }

 private:
  struct Cell {
    Moment write;
    Readers readers;
    uint32_t write_block = 0;
    uint32_t read_block = 0;
    bool many_blocks_read = false;
    bool atomic = false;
    bool written = false;
  };
  static_assert(sizeof(Cell) == 40, "SHADOW_CELL in job.py: the harness makes room for the cells");
  void read(Cell& cell, const Access& access, const When& when, ConflictSink& sink);
  void store(Cell& cell, const Access& access, const When& when, ConflictSink& sink, bool& overlap);

  const RegionSpec* spec_;
  uintptr_t begin_;
  size_t bytes_, granule_;
  bool initialised_;
  std::vector<Cell> cells_;
};
}  // namespace kw
