// What calls the checker: the runtime's events, and the code that -fsanitize=thread puts before every access.
// libtsan itself is not linked; these are its entry points (compiler-rt, tsan_interface.h, names only).
#include "../runtime/hooks.h"

#include <cstring>

#include "checker.h"

namespace kw {
void on_wait() { checker().settle(); }
void on_barrier() { checker().barrier(); }
void on_block_begin(const Block& block, uint64_t index) { checker().begin_block(block, index); }
void on_block_end() { checker().end_block(); }
void on_launch(size_t dynamic_shared_bytes) { checker().begin_launch(dynamic_shared_bytes); }
void on_copy(const AsyncCopy& copy) {
  const size_t read = copy.bytes - copy.zero_fill;
  checker().access({reinterpret_cast<uintptr_t>(copy.from), read, false, copy.where}, read == copy.bytes);
  checker().access({reinterpret_cast<uintptr_t>(copy.to), copy.bytes, true, copy.where}, true);
}
void on_read(const void* address, size_t bytes, const void* where) {
  checker().access({reinterpret_cast<uintptr_t>(address), bytes, false, where}, false);
}
}  // namespace kw

namespace {
void access(const void* address, size_t bytes, bool write, const void* pc, bool sized) {
  kw::checker().access({reinterpret_cast<uintptr_t>(address), bytes, write, pc}, sized);
}
}  // namespace

#define KW_HERE __builtin_return_address(0)
#define KW_HOOK(NAME, BYTES, WRITE) \
  void __tsan_##NAME(void* p) { access(p, BYTES, WRITE, KW_HERE, true); }

extern "C" {
KW_HOOK(read1, 1, false)
KW_HOOK(read2, 2, false)
KW_HOOK(read4, 4, false)
KW_HOOK(read8, 8, false)
KW_HOOK(read16, 16, false)
KW_HOOK(write1, 1, true)
KW_HOOK(write2, 2, true)
KW_HOOK(write4, 4, true)
KW_HOOK(write8, 8, true)
KW_HOOK(write16, 16, true)
KW_HOOK(unaligned_read2, 2, false)
KW_HOOK(unaligned_read4, 4, false)
KW_HOOK(unaligned_read8, 8, false)
KW_HOOK(unaligned_read16, 16, false)
KW_HOOK(unaligned_write2, 2, true)
KW_HOOK(unaligned_write4, 4, true)
KW_HOOK(unaligned_write8, 8, true)
KW_HOOK(unaligned_write16, 16, true)
void __tsan_read_range(void* p, unsigned long bytes) { access(p, bytes, false, KW_HERE, false); }
void __tsan_write_range(void* p, unsigned long bytes) { access(p, bytes, true, KW_HERE, false); }
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
// Of -fsanitize=object-size: an access to a variable, beyond its end. -fsanitize=thread alone leaves out a
// local array whose address nobody takes, and an index beyond it reaches anything.
void __ubsan_handle_type_mismatch_v1(void*, void*) { kw::checker().beyond_object(KW_HERE); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

// Calls to these are not instrumented; the link of a checked candidate redirects them here.
void* __wrap_memcpy(void* to, const void* from, size_t bytes) {
  access(from, bytes, false, KW_HERE, false);
  access(to, bytes, true, KW_HERE, false);
  return memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, size_t bytes) {
  access(from, bytes, false, KW_HERE, false);
  access(to, bytes, true, KW_HERE, false);
  return memmove(to, from, bytes);
}
void* __wrap_memset(void* to, int value, size_t bytes) {
  access(to, bytes, true, KW_HERE, false);
  return memset(to, value, bytes);
}

void kw_fence(int) { kw::checker().fence(); }
void kw_atomic_access(const void* address, size_t bytes, const void* where) {
  kw::checker().atomic({reinterpret_cast<uintptr_t>(address), bytes, true, where});
}
}
