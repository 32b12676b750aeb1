#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "report.h"

#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
.globl kw_switch
.hidden kw_switch
.type kw_switch,@function
kw_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size kw_switch,.-kw_switch
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl kw_switch
.hidden kw_switch
.type kw_switch,%function
kw_switch:
  stp x29,x30,[sp,#-160]!
  stp x19,x20,[sp,#16]
  stp x21,x22,[sp,#32]
  stp x23,x24,[sp,#48]
  stp x25,x26,[sp,#64]
  stp x27,x28,[sp,#80]
  stp d8,d9,[sp,#96]
  stp d10,d11,[sp,#112]
  stp d12,d13,[sp,#128]
  stp d14,d15,[sp,#144]
  mov x2,sp
  str x2,[x0]
  mov sp,x1
  ldp x19,x20,[sp,#16]
  ldp x21,x22,[sp,#32]
  ldp x23,x24,[sp,#48]
  ldp x25,x26,[sp,#64]
  ldp x27,x28,[sp,#80]
  ldp d8,d9,[sp,#96]
  ldp d10,d11,[sp,#112]
  ldp d12,d13,[sp,#128]
  ldp d14,d15,[sp,#144]
  ldp x29,x30,[sp],#160
  ret
.size kw_switch,.-kw_switch
)");
#else
#error "kw_switch is written for x86-64 and aarch64"
#endif

namespace kw {
namespace {
size_t page() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
}  // namespace

Stacks::~Stacks() {
  if (base_ != nullptr) munmap(base_, count_ * pitch());
}

size_t Stacks::pitch() const { return bytes_ + page(); }

void Stacks::reserve(size_t count, size_t bytes) {
  if (count <= count_ && bytes == bytes_) return;
  if (base_ != nullptr) munmap(base_, count_ * pitch());
  base_ = nullptr;
  count_ = count;
  bytes_ = bytes;
  opened_ = 0;
  void* at = mmap(nullptr, count_ * pitch(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    launch_failed("out of memory: no room for %zu thread stacks of %zu bytes", count_, bytes_);
  }
  base_ = static_cast<char*>(at);
}

void* Stacks::fresh(size_t index, void (*main)()) {
  for (; opened_ <= index; opened_++) {
    if (mprotect(base_ + opened_ * pitch() + page(), bytes_, PROT_READ | PROT_WRITE) != 0) {
      launch_failed("out of memory: no room for thread stack %zu", opened_);
    }
  }
  // Tops are staggered so that the same frame of different fibers does not share a set of the L1 cache.
  uintptr_t top = reinterpret_cast<uintptr_t>(base_) + (index + 1) * pitch() - index % 61 * 64;
  void** stack = reinterpret_cast<void**>(top & ~static_cast<uintptr_t>(15));
#if defined(__x86_64__)
  *--stack = nullptr;  // keeps the stack aligned as after a call
  *--stack = reinterpret_cast<void*>(main);
  for (int saved = 0; saved < 6; saved++) *--stack = nullptr;
#else
  stack -= 20;
  memset(stack, 0, 160);
  stack[1] = reinterpret_cast<void*>(main);
#endif
  return stack;
}

bool Stacks::contains(const void* address) const {
  // A signal handler of another OS thread may ask while this row is not there yet.
  return base_ != nullptr &&
         static_cast<size_t>(static_cast<const char*>(address) - base_) < count_ * pitch();
}

size_t Stacks::index_of(const void* address) const {
  return static_cast<size_t>(static_cast<const char*>(address) - base_) / pitch();
}

bool Stacks::in_guard(const void* address) const {
  return contains(address) &&
         static_cast<size_t>(static_cast<const char*>(address) - base_) % pitch() < page();
}
}  // namespace kw
