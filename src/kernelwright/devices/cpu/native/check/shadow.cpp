#include "shadow.h"

#include <algorithm>

namespace kw {
namespace {
Fault race_between(uint16_t a, uint16_t b) { return a / 32 == b / 32 ? Fault::kRaceInWarp : Fault::kRace; }
}  // namespace

// ---- shared memory --------------------------------------------------------------------------------

std::pair<size_t, size_t> SharedShadow::cells_of(size_t offset, size_t bytes) {
  while (((offset | bytes) & (granule_ - 1)) != 0) {
    granule_ /= 2;
    std::vector<Cell> halves;
    halves.reserve(2 * cells_.size());
    for (const Cell& cell : cells_) halves.insert(halves.end(), 2, cell);
    cells_ = std::move(halves);
  }
  return {offset / granule_, (offset + bytes) / granule_};
}

void SharedShadow::access(size_t offset, const Access& access, const Moment& now, ConflictSink& sink) {
  bool overlap = false;
  const auto [first, last] = cells_of(offset, access.bytes);
  for (size_t i = first; i < last; i++) {
    Cell& cell = cells_.at(i);
    if (access.write) {
      store(cell, access, now, sink, overlap);
    } else {
      read(cell, access, now, sink);
    }
  }
}

void SharedShadow::read(Cell& cell, const Access& access, const Moment& now, ConflictSink& sink) {
  if (cell.write.epoch < first_epoch_) {
    sink.conflict(access, {Fault::kUninitialisedShared, "of shared memory that this block never wrote", -1});
  } else if (!cell.write.before(now)) {
    sink.conflict(access, {race_between(cell.write.rank, now.rank),
                           cell.atomic ? "of shared memory updated by an atomic, no barrier between"
                                       : "of shared memory written by another thread, no barrier between",
                           cell.write.rank});
  }
  cell.readers.add(now);
}

void SharedShadow::store(Cell& cell, const Access& access, const Moment& now, ConflictSink& sink,
                         bool& overlap) {
  if (!cell.readers.before(now)) {
    const bool many = cell.readers.spread == Readers::kManyWarps;
    sink.conflict(access,
                  {many ? Fault::kRace : race_between(cell.readers.last.rank, now.rank),
                   "to shared memory read by another thread, no barrier between", cell.readers.last.rank});
  } else if (cell.write.epoch >= first_epoch_ && !cell.write.before(now) && !overlap) {
    overlap = true;
    sink.overlapping_stores(access, cell.write.rank, true);
  }
  cell.write = now;
  cell.readers = Readers{};
  cell.atomic = false;
}

void SharedShadow::atomic(size_t offset, const Access& access, const Moment& now, ConflictSink& sink) {
  const auto [first, last] = cells_of(offset, access.bytes);
  for (size_t i = first; i < last; i++) {
    Cell& cell = cells_.at(i);
    if (cell.write.epoch < first_epoch_) {
      sink.conflict(
          access, {Fault::kUninitialisedShared, "(atomic) of shared memory that this block never wrote", -1});
    } else if (!cell.atomic && !cell.write.before(now)) {
      sink.conflict(access, {race_between(cell.write.rank, now.rank),
                             "(atomic) to shared memory written by another thread, no barrier between",
                             cell.write.rank});
    }
    cell.write = now;
    cell.atomic = true;
  }
}

// ---- buffers --------------------------------------------------------------------------------------

BufferShadow::BufferShadow(const RegionSpec& spec, uintptr_t begin, bool initialised)
    : spec_(&spec),
      begin_(begin),
      bytes_(spec.bytes),
      granule_(std::min(4u, spec.element_bytes)),
      initialised_(initialised),
      cells_(spec.writable ? (bytes_ + granule_ - 1) / granule_ : 0) {}

void BufferShadow::access(const Access& access, const When& when, ConflictSink& sink) {
  if (!spec_->writable) return;  // nothing can go wrong with a read of what nobody writes
  bool overlap = false;
  const size_t last = (access.end() - 1 - begin_) / granule_;
  for (size_t i = (access.address - begin_) / granule_; i <= last; i++) {
    if (access.write) {
      store(cells_.at(i), access, when, sink, overlap);
    } else {
      read(cells_.at(i), access, when, sink);
    }
  }
}

void BufferShadow::read(Cell& cell, const Access& access, const When& when, ConflictSink& sink) {
  if (!cell.written && !initialised_) {
    sink.conflict(access, {Fault::kUninitialisedGlobal, "of global memory that nothing has written", -1});
  } else if (cell.write_block >= when.launch && cell.written && !cell.atomic) {
    if (cell.write_block != when.block) {
      if (!when.fenced)
        sink.conflict(access, {Fault::kRace, "of global memory written by another block", -1});
    } else if (!cell.write.before(when.now)) {
      sink.conflict(access, {race_between(cell.write.rank, when.now.rank),
                             "of global memory written by another thread of the block, no barrier between",
                             cell.write.rank});
    }
  }
  if (cell.read_block >= when.launch && cell.read_block != when.block) cell.many_blocks_read = true;
  if (cell.read_block < when.launch) cell.many_blocks_read = false;
  cell.read_block = when.block;
  cell.readers.add(when.now);
}

void BufferShadow::store(Cell& cell, const Access& access, const When& when, ConflictSink& sink,
                         bool& overlap) {
  const bool read_now = cell.read_block >= when.launch;
  const bool written_now = cell.written && cell.write_block >= when.launch;
  if (read_now && !when.fenced && (cell.many_blocks_read || cell.read_block != when.block)) {
    sink.conflict(access, {Fault::kRace, "to global memory read by another block", -1});
  } else if (read_now && cell.read_block == when.block && !cell.readers.before(when.now)) {
    sink.conflict(access, {race_between(cell.readers.last.rank, when.now.rank),
                           "to global memory read by another thread of the block, no barrier between",
                           cell.readers.last.rank});
  } else if (written_now && !overlap &&
             (cell.write_block != when.block ? !when.fenced : !cell.write.before(when.now))) {
    overlap = true;
    sink.overlapping_stores(access, cell.write.rank, false);
  }
  cell.write = when.now;
  cell.write_block = when.block;
  cell.atomic = false;
  cell.written = true;
}

void BufferShadow::atomic(const Access& access, const When& when, ConflictSink& sink) {
  const size_t last = (access.end() - 1 - begin_) / granule_;
  for (size_t i = (access.address - begin_) / granule_; i <= last; i++) {
    Cell& cell = cells_.at(i);
    if (!cell.written && !initialised_) {
      sink.conflict(access,
                    {Fault::kUninitialisedGlobal, "(atomic) of global memory that nothing has written", -1});
    }
    cell.write = when.now;
    cell.write_block = when.block;
    cell.atomic = true;
    cell.written = true;
  }
}

size_t BufferShadow::unwritten() const {
  return static_cast<size_t>(
      std::count_if(cells_.begin(), cells_.end(), [](const Cell& c) { return !c.written; }));
}

}  // namespace kw
