#include "confine.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

namespace kw {
namespace {
#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

constexpr sock_filter load(size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}
constexpr sock_filter skip_unless_equal(uint32_t value, uint8_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip);
}
constexpr sock_filter answer(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

constexpr size_t argument(size_t index) { return offsetof(seccomp_data, args) + 8 * index; }

void set_limit(decltype(RLIMIT_AS) what, uint64_t value, uint64_t more = 0) {
  const rlimit limit = {value, value + more};
  setrlimit(what, &limit);
}
}  // namespace

void limit_resources(uint64_t memory_bytes, uint64_t cpu_seconds) {
  set_limit(RLIMIT_CORE, 0);
  if (memory_bytes != 0) set_limit(RLIMIT_AS, memory_bytes);
  // SIGXCPU at the soft limit says why; at the hard one it is SIGKILL, as anybody's.
  if (cpu_seconds != 0) set_limit(RLIMIT_CPU, cpu_seconds, 1);
}

void die_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

int keep_only(int kept) {
  constexpr int kMany = 4096;
  if (kept != kLine) dup2(kept, kLine);
  close(STDIN_FILENO);
  close(STDOUT_FILENO);
#ifdef SYS_close_range
  if (syscall(SYS_close_range, kLine + 1, ~0u, 0) == 0) return kLine;
#endif
  for (int fd = kLine + 1; fd < kMany; fd++) close(fd);
  return kLine;
}

void hide_clock() { prctl(PR_SET_TSC, PR_TSC_SIGSEGV); }

bool confine(int report_fd) {
  std::vector<sock_filter> filter = {
      load(offsetof(seccomp_data, arch)),
      skip_unless_equal(kArchitecture, 1),
      load(offsetof(seccomp_data, nr)),
  };
  // The architecture check above skips the load when it fails; the number then matches nothing below.
  for (const uint32_t call :
       {__NR_futex, __NR_munmap, __NR_madvise, __NR_brk, __NR_exit, __NR_exit_group, __NR_rt_sigreturn,
        __NR_clock_gettime, __NR_sched_yield, __NR_restart_syscall}) {
    filter.push_back(skip_unless_equal(call, 1));
    filter.push_back(answer(SECCOMP_RET_ALLOW));
  }
  filter.push_back(skip_unless_equal(__NR_write, 3));
  filter.push_back(load(argument(0)));
  filter.push_back(skip_unless_equal(static_cast<uint32_t>(report_fd), 1));
  filter.push_back(answer(SECCOMP_RET_ALLOW));
  for (const uint32_t call : {__NR_mmap, __NR_mprotect}) {  // but never executable memory
    filter.push_back(load(offsetof(seccomp_data, nr)));
    filter.push_back(skip_unless_equal(call, 3));
    filter.push_back(load(argument(2)));
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0));
    filter.push_back(answer(SECCOMP_RET_ALLOW));
  }
  filter.push_back(answer(SECCOMP_RET_KILL_PROCESS));

  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}
}  // namespace kw
