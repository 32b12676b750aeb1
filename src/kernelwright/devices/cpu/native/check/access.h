// One access of a kernel to memory, and what orders two of them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kw {
// When a thread did something: its rank in the block, how many block barriers went before (over all blocks),
// and how many __syncwarp of its warp.
struct Moment {
  uint32_t epoch = 0;
  uint32_t warp_epoch = 0;
  uint16_t rank = 0;

  // Whether this moment happened before `later` (of the same block), as barriers order them.
  bool before(const Moment& later) const {
    return epoch != later.epoch || rank == later.rank ||
           (rank / 32 == later.rank / 32 && warp_epoch < later.warp_epoch);
  }
};

// The latest readers of a cell within one epoch: the last one, and how far the others are spread.
struct Readers {
  enum Spread : uint8_t { kOneThread, kOneWarp, kManyWarps };
  Moment last;
  Spread spread = kOneThread;

  void add(const Moment& now) {
    if (last.epoch != now.epoch) {
      spread = kOneThread;
    } else if (last.rank != now.rank) {
      if (last.rank / 32 != now.rank / 32) {
        spread = kManyWarps;
      } else if (spread == kOneThread) {
        spread = kOneWarp;
      }
    }
    last = now;
  }

  // Whether every reader happened before a write at `now`.
  bool before(const Moment& now) const {
    if (last.epoch != now.epoch) return true;
    if (spread == kManyWarps) return false;
    if (spread == kOneThread) return last.before(now);
    return last.rank / 32 == now.rank / 32 && last.warp_epoch < now.warp_epoch;
  }
};

struct Access {
  uintptr_t address;
  size_t bytes;
  bool write;
  const void* pc;  // return address in the candidate: the source line

  uintptr_t end() const { return address + bytes; }
};

enum class Fault {
  kOutOfBounds,
  kMisaligned,
  kRace,
  kRaceInWarp,
  kUninitialisedShared,
  kUninitialisedGlobal,
  kWriteToInput,
  kWriteToConstant,
};
}  // namespace kw
