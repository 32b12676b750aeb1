#include "crash.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "../device/abi.h"
#include "grid.h"
#include "memory.h"
#include "report.h"

namespace kw {
namespace {
constexpr size_t kSignalStack = 64 << 10;

bool was_write(const void* context) {
#if defined(__x86_64__)
  // Bit 1 of the page fault error code: the access was a write (Intel SDM vol. 3, 4.7).
  return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2;
#else
  (void)context;
  return false;
#endif
}

const char* what_happened(int signal, const siginfo_t* info, const void* context, char* out, size_t size) {
  switch (signal) {
    case SIGFPE: return "crash\tinteger division by zero";
    case SIGILL: return "crash\ttrap or illegal instruction";
    case SIGSYS: return "crash\tsystem call refused";
    default: break;
  }
  const CrashContext& known = crash_context();
  if (known.grid != nullptr && known.grid->is_stack_guard(info->si_addr)) {
    return "crash\tstack overflow: local arrays or recursion need more stack than a thread has";
  }
  const bool wild = info->si_code == SI_KERNEL;  // a non-canonical address: the CPU does not say which
  char where[160] = "outside every buffer (a wild pointer, or a misaligned vector access)";
  if (known.memory != nullptr && !wild) known.memory->describe(info->si_addr, where, sizeof where);
  const bool input = known.memory != nullptr && !wild && known.memory->is_read_only(info->si_addr);
  const char* kind = input ? "write-to-input" : "crash";
  snprintf(out, size, "%s\tout-of-bounds %s %s", kind, was_write(context) ? "write" : "read", where);
  if (input) snprintf(out, size, "%s\twrites its input, %s", kind, where);
  return out;
}

void on_signal(int signal, siginfo_t* info, void* context) {
  char text[320];
  const char* what = what_happened(signal, info, context, text, sizeof text);
  const uint3 b = kw_thread.block, t = kw_thread.thread;
  report("%s, kernel %s, block (%u,%u,%u) thread (%u,%u,%u)", what, crash_context().kernel, b.x, b.y, b.z,
         t.x, t.y, t.z);
  _exit(0);
}
}  // namespace

CrashContext& crash_context() {
  static CrashContext instance;  // a signal handler has no other way to its context
  return instance;
}

void catch_crashes() {
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS}) sigaction(signal, &action, nullptr);
  catch_crashes_on_this_thread();
}

void catch_crashes_on_this_thread() {
  stack_t stack = {};
  stack.ss_sp = malloc(kSignalStack);  // lives as long as the thread, which lives as long as the process
  stack.ss_size = kSignalStack;
  sigaltstack(&stack, nullptr);
}
}  // namespace kw
