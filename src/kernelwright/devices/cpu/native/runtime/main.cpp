// The runner: maps the buffers of a job, loads a candidate, and performs each run in a process of its own, which
// it times from outside. It never sees an expected value; the harness compares the outputs when all have ended.
//
//   runner ARTIFACT < JOB > REPORT
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>

#include "candidate.h"
#include "confine.h"
#include "crash.h"
#include "grid.h"
#include "job.h"
#include "memory.h"
#include "report.h"
#include "supervise.h"
#ifdef KW_CHECK
#include "../check/checker.h"
#endif

namespace kw {
namespace {
constexpr int kJob = STDIN_FILENO;

unsigned long long clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<unsigned long long>(t.tv_sec) * 1000000000u + static_cast<unsigned long long>(t.tv_nsec);
}

// CPU time of the process. Linux books a running thread's time when that thread asks for it, or at a tick.
unsigned long long cpu_time_ns(Grid& grid) {
  grid.on_every_thread([](unsigned) { clock_ns(CLOCK_THREAD_CPUTIME_ID); });
  return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

Launch make_launch(const LaunchSpec& spec, const KwKernel* kernel, const RunSpec& run, Arguments& arguments) {
  return {kernel,
          arguments.pointers(),
          dim3(spec.grid[0], spec.grid[1], spec.grid[2]),
          dim3(spec.block[0], spec.block[1], spec.block[2]),
          spec.dynamic_shared_bytes,
          static_cast<Order>(run.order),
          run.seed,
          run.clock};
}

// Shared memory starts every run as NaN, so that nothing of an earlier run can be used.
void poison_shared_memory(const Job& job, const Candidate& candidate, Grid& grid) {
  grid.on_every_thread([&](unsigned) {
    const Range shared = candidate.shared_memory(job);
    memset(reinterpret_cast<void*>(shared.begin), kSharedPoison, shared.bytes());
  });
}

// Stacks, threads and queues are made ready by a launch of our own, which is not timed.
void warm_up(const Job& job, Grid& grid) {
  static const KwKernel kernel = {"", [](void**) { kw_barrier(0); }, ""};
  unsigned threads = 1;
  for (const LaunchSpec& l : job.launches) threads = std::max(threads, l.block[0] * l.block[1] * l.block[2]);
  grid.warm_up({&kernel, nullptr, dim3(job.threads), dim3(threads), 0, Order::kForward, 0});
}

// What calls that have returned left on the stack, such as where in a file the buffers lie.
__attribute__((noinline)) void forget_dead_stack() {
  volatile char dead[64 << 10];
  for (volatile char& byte : dead) byte = 0;
}

// One run of the plan, in the child: buffers made ready, everything given up that a kernel does not need, launches.
void perform(const Job& job, const std::vector<const KwKernel*>& kernels, const Candidate& candidate, RunSpec& run,
             int report_fd) {
  die_with_parent();
  report_to(report_fd);
  report("ready");  // brings in the pages that the watcher needs: it is not to do that beside a timed launch
  const Memory memory(run.regions);
  crash_context().memory = &memory;
  report_to(keep_only(report_fd));
  catch_crashes();
  hide_clock();
  Grid grid(job.threads, job.stack_bytes);
  crash_context().grid = &grid;
  std::vector<Arguments> arguments;
  for (const LaunchSpec& launch : job.launches) arguments.emplace_back(launch, run, memory);
  std::vector<Launch> launches;
  for (size_t i = 0; i < kernels.size(); i++) {
    launches.push_back(make_launch(job.launches[i], kernels[i], run, arguments[i]));
  }
  for (const Fill& fill : run.fills) memory.fill(fill);
  for (const Copy& copy : run.copies) memory.copy(copy);
  poison_shared_memory(job, candidate, grid);
#ifdef KW_CHECK
  checker().prepare(job, candidate);
  checker().begin_run(run, memory);
#else
  warm_up(job, grid);
#endif
  forget_dead_stack();
  if (!confine(kLine)) report("note\tsystem calls are not confined on this kernel");
  report("begin\t%llu", cpu_time_ns(grid));
  for (const Launch& launch : launches) {
    crash_context().kernel = launch.kernel->name;
    if (!grid.run(launch)) break;
  }
#ifdef KW_CHECK
  checker().end_run();
#endif
  if (failures() > 0) _exit(0);
  report("time");
  await_the_end();
}

// The next run of the job, watched. True when another one may follow.
bool watch_run(const Job& job, const std::vector<const KwKernel*>& kernels, const Candidate& candidate) {
  die_with_parent();
  RunSpec run;
  if (!read_run(kJob, run)) return false;
  share_print_log();
  report("start");
  const RunSeen seen =
      run_in_child([&](int report_fd) { perform(job, kernels, candidate, run, report_fd); });
  report("ran\t%d\t%llu\t%llu\t%d", static_cast<int>(seen.complete),
         static_cast<unsigned long long>(seen.nanoseconds),
         static_cast<unsigned long long>(seen.cpu_nanoseconds), seen.status);
  report_printed();
  return seen.complete && !seen.failed;
}

// Each run has a watcher of its own: what a run is, says, prints and costs is in no memory that a later one inherits.
bool in_own_watcher(const std::function<bool()>& watch) {
  const pid_t watcher = fork();
  if (watcher < 0) harness_fault("the watcher of a run cannot be started");
  if (watcher == 0) _exit(watch() ? 0 : 1);
  int status = 0;
  waitpid(watcher, &status, 0);
  if (WIFSIGNALED(status)) raise(WTERMSIG(status));  // as if it had hit this process: the harness sees which
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void run_job(const char* artifact) {
  die_with_parent();
  Job job = read_job(kJob);
  limit_resources(job.memory_bytes, job.cpu_seconds);
  job.memory_bytes = job.cpu_seconds = 0;  // how much is left tells how much there has been
  const Candidate candidate(artifact);
  std::vector<const KwKernel*> kernels;
  for (const LaunchSpec& launch : job.launches) kernels.push_back(candidate.kernel_for(launch));
  while (in_own_watcher([&] { return watch_run(job, kernels, candidate); })) {
  }
  report("end");
}
}  // namespace
}  // namespace kw

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: runner ARTIFACT < JOB > REPORT\n");
    return 2;
  }
  kw::report_to(STDOUT_FILENO);
  try {
    kw::run_job(argv[1]);
  } catch (const std::bad_alloc&) {
    kw::launch_failed("out of memory");
  } catch (const std::exception& error) {
    kw::harness_fault("%s", error.what());
  }
  // Static destructors would join nothing and free nothing that matters: leave at once.
  quick_exit(0);
}
