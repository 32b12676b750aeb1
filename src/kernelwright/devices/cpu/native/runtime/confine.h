// Gives up what running a kernel does not need, before the candidate's code runs.
#pragma once
#include <cstdint>

namespace kw {
// Limits of the whole process: address space in bytes and CPU time in seconds (0: unlimited); no core dumps.
void limit_resources(uint64_t memory_bytes, uint64_t cpu_seconds);

// The process ends when the harness that started it does, however that ends.
void die_with_parent();

// Closes every descriptor but `kept` and the standard one for errors, and gives the number that `kept` has from now on,
// whatever was open before: what is mapped stays mapped, nothing else can be had.
constexpr int kLine = 3;
int keep_only(int kept);

// Instructions that read a clock end the process from now on, in this thread and those that it starts.
void hide_clock();

// From now on only memory management, waiting, and writing to `report_fd` are possible; any other system call
// ends the process. False where the kernel cannot do that.
bool confine(int report_fd);
}  // namespace kw
