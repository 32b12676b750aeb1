#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "report.h"

namespace kw {
namespace {
constexpr size_t kGuard = 64 << 10;  // wide enough for a stride to fall into it

void repeat(uint64_t pattern, unsigned char* to, uint64_t bytes) {
  uint64_t at = 0;
  for (; at + 8 <= bytes; at += 8) memcpy(to + at, &pattern, 8);
  memcpy(to + at, &pattern, bytes - at);
}
}  // namespace

Memory::Memory(const std::vector<RegionSpec>& specs) {
  for (const RegionSpec& spec : specs) {
    void* reserved = mmap(nullptr, spec.map_bytes + 2 * kGuard, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) launch_failed("out of memory: no room for %s", spec.name.c_str());
    auto* mapping = static_cast<unsigned char*>(reserved) + kGuard;
    const int protection = spec.writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* mapped = mmap(mapping, spec.map_bytes, protection, MAP_SHARED | MAP_FIXED, spec.fd,
                        static_cast<off_t>(spec.file_offset));
    if (mapped == MAP_FAILED) launch_failed("out of memory: %s cannot be mapped", spec.name.c_str());
    regions_.push_back({&spec, mapping, mapping + spec.data_offset});
  }
}

void Memory::keep_only(const RunSpec& run) {
  for (unsigned i = 0; i < count(); i++) {
    const Region& r = regions_[i];
    const bool used = std::count(run.bindings.begin(), run.bindings.end(), i) > 0 ||
                      std::any_of(run.copies.begin(), run.copies.end(), [i](const Copy& c) { return c.from == i; });
    if (used && r.spec->writable) continue;
    if (used) {  // the timed launches are not to pay for page faults; what is written has been filled by then
      for (uint64_t at = 0; at < r.spec->map_bytes; at += 4096) {
        static_cast<void>(*const_cast<volatile unsigned char*>(r.mapping + at));
      }
    } else {
      mmap(r.mapping, r.spec->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    }
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
