// One run in a process of its own, watched from outside: what candidate code says of itself counts for nothing.
#pragma once
#include <cstdint>
#include <functional>

namespace kw {
// What the watcher saw. The kernel stamps the child's lines when they are sent; CPU time is read by process id.
struct RunSeen {
  bool complete = false;         // the child said "time", its last word
  bool failed = false;           // it said that something is wrong
  uint64_t nanoseconds = 0;      // from the first "begin" to "time"
  uint64_t cpu_nanoseconds = 0;  // used meanwhile and until it was stopped, all threads together
  int status = 0;                // as of waitpid
};

// Runs `body` in a forked child, which reports to the descriptor it gets. Its lines are passed on, marked as the
// child's. The child is stopped and ended when it says "time": what it does until then is seen in its CPU time.
RunSeen run_in_child(const std::function<void(int report_fd)>& body);

// In the child, after its last word: uses no CPU time until it is ended.
[[noreturn]] void await_the_end();
}  // namespace kw
