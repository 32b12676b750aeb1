// The buffers of a run, each between two guard pages.
#pragma once
#include <cstdint>
#include <vector>

#include "job.h"

namespace kw {
// What every byte of shared memory is when a run begins: floats are NaN, and g++'s guards say that all is constructed.
constexpr unsigned char kSharedPoison = 0xff;

class Memory {
 public:
  // Maps every region at a place that is drawn, so that no distance tells anything, and brings in the pages of those
  // that are only read. Ends the process with "out of memory" when there is no room.
  explicit Memory(std::vector<RegionSpec>& specs);

  unsigned char* data(unsigned region) const { return regions_.at(region).data; }
  const RegionSpec& spec(unsigned region) const { return *regions_.at(region).spec; }
  unsigned count() const { return static_cast<unsigned>(regions_.size()); }

  // Repeats an 8-byte pattern over the buffer.
  void fill(const Fill& fill) const;
  void copy(const Copy& copy) const;

  // Describes an address for a person: which buffer it is next to. Safe in a signal handler.
  void describe(const void* address, char* out, size_t size) const;
  // True when the address is in a buffer that may only be read.
  bool is_read_only(const void* address) const;

 private:
  struct Region {
    const RegionSpec* spec;
    unsigned char* mapping;  // behind the leading guard page
    unsigned char* data;
  };
  std::vector<Region> regions_;
};
}  // namespace kw
