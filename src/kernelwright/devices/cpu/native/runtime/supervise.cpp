#include "supervise.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "report.h"

namespace kw {
namespace {
struct Stamp {
  uint64_t kernel = 0;   // when the line was sent, 0 where the kernel does not tell
  uint64_t arrival = 0;  // when it was read
};

uint64_t nanoseconds(const timespec& t) {
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t clock_now(clockid_t clock) {
  timespec t = {};
  clock_gettime(clock, &t);
  return nanoseconds(t);
}

// Next line of the child; empty when it has ended.
std::string receive(int fd, Stamp& stamp) {
  char text[2048];
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
  iovec part = {text, sizeof text};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t n = recvmsg(fd, &message, 0);
  stamp = {0, clock_now(CLOCK_MONOTONIC)};
  if (n <= 0) return "";
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_TIMESTAMPNS) {
    timespec sent;
    memcpy(&sent, CMSG_DATA(header), sizeof sent);
    stamp.kernel = nanoseconds(sent);
  }
  return std::string(text, static_cast<size_t>(n));
}

uint64_t between(const Stamp& begin, const Stamp& end) {
  if (begin.kernel != 0 && end.kernel >= begin.kernel) return end.kernel - begin.kernel;
  return end.arrival - begin.arrival;
}

bool starts_with(const std::string& line, const char* word) { return line.compare(0, strlen(word), word) == 0; }

bool is_failure(const std::string& line) {
  return (starts_with(line, "finding\t") && !starts_with(line, "finding\tnote")) || starts_with(line, "crash") ||
         starts_with(line, "write-to-input") || starts_with(line, "launch");
}

// Stops the child where it is. Linux books the time of a running thread at a tick, that of a stopped one to the end.
void stop(pid_t child) {
  siginfo_t ignored;
  if (kill(child, SIGSTOP) == 0) waitid(P_PID, static_cast<id_t>(child), &ignored, WSTOPPED | WEXITED | WNOWAIT);
}

void watch(int fd, pid_t child, RunSeen& seen) {
  clockid_t cpu_clock = 0;
  const bool has_cpu_clock = clock_getcpuclockid(child, &cpu_clock) == 0;
  uint64_t cpu_before = 0;
  bool begun = false;
  Stamp begin, now;
  for (;;) {
    const std::string line = receive(fd, now);
    if (line.empty()) return;
    if (line == "time\n" && begun) {
      stop(child);
      if (has_cpu_clock) seen.cpu_nanoseconds = clock_now(cpu_clock) - cpu_before;
      seen.nanoseconds = between(begin, now);
      seen.complete = true;
      return;
    }
    // Only our own code has run before the first "begin", so that one is true; later ones are not looked at.
    if (!begun && starts_with(line, "begin\t")) {
      begun = true;
      begin = now;
      cpu_before = strtoull(line.c_str() + 6, nullptr, 10);
    }
    seen.failed = seen.failed || is_failure(line);
    report("say\t%.*s", static_cast<int>(line.size() - 1), line.c_str());
  }
}
}  // namespace

void await_the_end() {
  const int never = 0;
  for (;;) syscall(SYS_futex, &never, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
}

RunSeen run_in_child(const std::function<void(int report_fd)>& body) {
  int ends[2];
  // Lines stay whole, come with the time they were sent, and the end of the child is seen.
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) harness_fault("no socket for a run");
  const int on = 1;
  setsockopt(ends[0], SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  const pid_t child = fork();
  if (child < 0) harness_fault("a run cannot be started");
  if (child == 0) {
    body(ends[1]);
    _exit(0);
  }
  close(ends[1]);
  RunSeen seen;
  watch(ends[0], child, seen);
  // One that ended by itself keeps its own status: it is a zombie by now, or about to be.
  if (seen.complete) kill(child, SIGKILL);
  waitpid(child, &seen.status, 0);
  close(ends[0]);
  return seen;
}
}  // namespace kw
