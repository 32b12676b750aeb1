// What a candidate's object code and the runtime agree on. Included by both sides.
#pragma once
#include <cstddef>
#include <cstdint>

struct uint3 {
  unsigned x, y, z;
};

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// The built-in variables of the CUDA thread that runs now, for device code to read. `rank` is its linear index in the
// block. The runtime relies on none of them.
struct KwThread {
  uint3 thread;
  uint3 block;
  dim3 block_dim;
  dim3 grid_dim;
  unsigned rank;
};

// Why the lanes of a warp meet. Lanes that meet for different reasons are a finding.
// Only kKwSync orders memory; the others merely exchange values, as in CUDA.
enum KwMeeting : int { kKwSync, kKwConverge, kKwShuffle, kKwVote, kKwMatch, kKwReduce, kKwGather };

enum KwVote : int { kKwCount, kKwAnd, kKwOr };

// What the lanes of a warp brought to a meeting; `arrived` has one bit a lane.
struct KwLanes {
  uint64_t value[32];
  unsigned arrived;
};

// Bytes that the lanes of a full warp brought, lane after lane, `stride` bytes apart.
struct KwGathered {
  const unsigned char* bytes;
  size_t stride;
};

// One kernel of a candidate. `signature` has one letter a parameter (see entry.h).
struct KwKernel {
  const char* name;
  void (*call)(void** arguments);
  const char* signature;
};

extern "C" {
// Initial-exec TLS lives at a fixed distance of the thread pointer: reading a built-in is one load.
extern __thread KwThread kw_thread __attribute__((tls_model("initial-exec")));

void kw_barrier(int line);
int kw_barrier_vote(int vote, int predicate, int line);
const KwLanes* kw_warp_meet(int meeting, unsigned mask, uint64_t value, int line);
KwGathered kw_warp_gather(const void* mine, size_t bytes, int line);
unsigned kw_active_mask(int line);
void kw_bad_shuffle(unsigned source, int line);
void kw_fence(int scope);
long long kw_clock();
void kw_atomic_access(const void* address, size_t bytes, const void* where);
void kw_copy_async(void* to, const void* from, size_t bytes, size_t zero_fill);
void kw_copy_commit();
void kw_copy_wait(unsigned keep);
int kw_print(const char* format, ...) __attribute__((format(printf, 1, 2)));
void kw_assert_failed(const char* condition, int line) __attribute__((noreturn));
}
