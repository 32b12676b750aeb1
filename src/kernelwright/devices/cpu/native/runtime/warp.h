// Where the lanes of a warp meet: shuffles, votes, reductions, __syncwarp.
#pragma once
#include <memory>

#include "../device/abi.h"

namespace kw {
// A set of lanes that meet. Values have two buffers used in turn: a lane that was released first may come to
// the next meeting while others have not read the last one; nobody can come to the one after that.
struct LaneSet {
  unsigned mask = 0;
  unsigned arrived = 0;
  unsigned unread = 0;
  unsigned generation = 0;
  int meeting = 0;
  int line = 0;
  KwLanes lanes[2];
};

struct Warp {
  static constexpr unsigned kMaxSets = 16;
  unsigned live = 0;
  unsigned sets_used = 0;
  unsigned sync_epoch = 0;  // counts __syncwarp: what the checker orders accesses by
  unsigned gather_turn = 0;
  LaneSet sets[kMaxSets];

  // The set for `mask` that `lane` can join; nullptr when too many are waiting at once.
  LaneSet* set_for(unsigned mask, unsigned lane);
};
}  // namespace kw
