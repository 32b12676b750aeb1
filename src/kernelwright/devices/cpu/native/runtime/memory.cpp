#include "memory.h"

#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "report.h"

namespace kw {
namespace {
constexpr size_t kGuard = 64 << 10;  // wide enough for a stride to fall into it
constexpr size_t kPage = 4096;
// Where buffers lie: below what Linux gives to libraries and stacks, above what it gives to programs of fixed places.
constexpr uint64_t kLowest = 1ull << 36, kRoom = 1ull << 45;

void repeat(uint64_t pattern, unsigned char* to, uint64_t bytes) {
  uint64_t at = 0;
  for (; at + 8 <= bytes; at += 8) memcpy(to + at, &pattern, 8);
  memcpy(to + at, &pattern, bytes - at);
}

// Address space for nobody yet, at a drawn place.
unsigned char* reserve(uint64_t bytes) {
  for (int tries = 0; tries < 64; tries++) {
    uint64_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn) harness_fault("no place can be drawn");
    auto* wanted = reinterpret_cast<void*>(kLowest + drawn % (kRoom / kPage) * kPage);
    void* got = mmap(wanted, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == wanted) return static_cast<unsigned char*>(got);
    if (got != MAP_FAILED) munmap(got, bytes);
    if (got == MAP_FAILED && errno == ENOMEM) break;
  }
  launch_failed("out of memory: no room for a buffer");
}
}  // namespace

Memory::Memory(std::vector<RegionSpec>& specs) {
  for (RegionSpec& spec : specs) {
    unsigned char* mapping = reserve(spec.map_bytes + 2 * kGuard) + kGuard;
    const int protection = spec.writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* mapped = mmap(mapping, spec.map_bytes, protection, MAP_SHARED | MAP_FIXED, spec.fd,
                        static_cast<off_t>(spec.file_offset));
    if (mapped == MAP_FAILED) launch_failed("out of memory: %s cannot be mapped", spec.name.c_str());
    // The timed launches are not to pay for page faults; what is written has been filled by then.
    for (uint64_t at = 0; !spec.writable && at < spec.map_bytes; at += kPage) {
      static_cast<void>(*const_cast<volatile unsigned char*>(mapping + at));
    }
    spec.fd = -1;  // which file it was, and where in it, tells the run from others
    spec.file_offset = 0;
    regions_.push_back({&spec, mapping, mapping + spec.data_offset});
  }
}

void Memory::fill(const Fill& fill) const { repeat(fill.pattern, data(fill.region), spec(fill.region).bytes); }

void Memory::copy(const Copy& copy) const { memcpy(data(copy.to), data(copy.from), spec(copy.to).bytes); }

void Memory::describe(const void* address, char* out, size_t size) const {
  const auto* at = static_cast<const unsigned char*>(address);
  for (const Region& r : regions_) {
    if (at < r.mapping - kGuard || at >= r.mapping + r.spec->map_bytes + kGuard) continue;
    const char* name = r.spec->name.c_str();
    if (at < r.data) {
      snprintf(out, size, "%ld bytes before the start of %s", static_cast<long>(r.data - at), name);
    } else if (at >= r.data + r.spec->bytes) {
      snprintf(out, size, "%ld bytes past the end of %s", static_cast<long>(at - r.data - r.spec->bytes),
               name);
    } else {
      snprintf(out, size, "at byte %ld of %s", static_cast<long>(at - r.data), name);
    }
    return;
  }
  if (reinterpret_cast<uintptr_t>(address) < 65536) {
    snprintf(out, size, "through a null pointer");
  } else {
    snprintf(out, size, "outside every buffer");
  }
}

bool Memory::is_read_only(const void* address) const {
  const auto* at = static_cast<const unsigned char*>(address);
  for (const Region& r : regions_) {
    if (at >= r.mapping && at < r.mapping + r.spec->map_bytes) return !r.spec->writable;
  }
  return false;
}
}  // namespace kw
