// Where the checked mode listens to the runtime. Empty in fast mode.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kw {
class Block;
struct AsyncCopy;

#ifdef KW_CHECK
void on_wait();     // a thread is about to wait or to end
void on_barrier();  // all threads of the block met
void on_block_begin(const Block& block, uint64_t index);
void on_block_end();
void on_launch(size_t dynamic_shared_bytes);
void on_copy(const AsyncCopy& copy);
// The runtime is about to read for the kernel, at `where` in its code.
void on_read(const void* address, size_t bytes, const void* where);
#else
inline void on_wait() {}
inline void on_barrier() {}
inline void on_block_begin(const Block&, uint64_t) {}
inline void on_block_end() {}
inline void on_launch(size_t) {}
inline void on_copy(const AsyncCopy&) {}
inline void on_read(const void*, size_t, const void*) {}
#endif
}  // namespace kw
