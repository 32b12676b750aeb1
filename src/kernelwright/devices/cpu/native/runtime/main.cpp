// The runner: maps the buffers of a job, loads a candidate, performs the runs and times them. It never sees
// an expected value; the harness compares the outputs when this process has ended.
//
//   runner ARTIFACT JOB_FD REPORT_FD
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>

#include "candidate.h"
#include "confine.h"
#include "crash.h"
#include "grid.h"
#include "job.h"
#include "memory.h"
#include "report.h"
#ifdef KW_CHECK
#include "../check/checker.h"
#endif

namespace kw {
namespace {
uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

Launch make_launch(const LaunchSpec& spec, const KwKernel* kernel, const RunSpec& run, Arguments& arguments) {
  return {kernel,
          arguments.pointers(),
          dim3(spec.grid[0], spec.grid[1], spec.grid[2]),
          dim3(spec.block[0], spec.block[1], spec.block[2]),
          spec.dynamic_shared_bytes,
          static_cast<Order>(run.order),
          run.seed};
}

// Shared memory starts every run as NaN, so that nothing of an earlier run can be used.
void poison_shared_memory(const Job& job, const Candidate& candidate, Grid& grid) {
  grid.on_every_thread([&] {
    const Range shared = candidate.shared_memory(job);
    memset(reinterpret_cast<void*>(shared.begin), 0xff, shared.bytes());
  });
}

// One run of the plan: buffers made ready, launches timed. False when it failed.
bool perform(const Job& job, const std::vector<const KwKernel*>& kernels, const Memory& memory,
             const Candidate& candidate, Grid& grid, size_t index) {
  const RunSpec& run = job.runs[index];
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
  checker().begin_run(run, memory);
#endif
  report("begin\t%zu", index);
  const uint64_t begin = now_ns();
  for (const Launch& launch : launches) {
    crash_context().kernel = launch.kernel->name;
    if (!grid.run(launch)) break;
  }
  const uint64_t end = now_ns();
  report("time\t%zu\t%llu", index, static_cast<unsigned long long>(end - begin));
#ifdef KW_CHECK
  checker().end_run();
#endif
  return failures() == 0;
}

void run_job(const char* artifact, int job_fd, int report_fd) {
  die_with_parent();
  const Job job = read_job(job_fd);
  limit_resources(job.memory_bytes, job.cpu_seconds);
  catch_crashes();
  const Memory memory(job.regions);
  crash_context().memory = &memory;
  const Candidate candidate(artifact);
  std::vector<const KwKernel*> kernels;
  for (const LaunchSpec& launch : job.launches) kernels.push_back(candidate.kernel_for(launch));
  Grid grid(job.threads, job.stack_bytes);
  crash_context().grid = &grid;
#ifdef KW_CHECK
  checker().prepare(job, candidate);
#endif
  if (!confine(report_fd)) report("note\tsystem calls are not confined on this kernel");
  for (size_t i = 0; i < job.runs.size(); i++) {
    if (!perform(job, kernels, memory, candidate, grid, i)) break;
  }
  report_printed();
  report("end");
}
}  // namespace
}  // namespace kw

int main(int argc, char** argv) {
  if (argc != 4) {
    fprintf(stderr, "usage: runner ARTIFACT JOB_FD REPORT_FD\n");
    return 2;
  }
  const int report_fd = atoi(argv[3]);
  kw::report_to(report_fd);
  try {
    kw::run_job(argv[1], atoi(argv[2]), report_fd);
  } catch (const std::bad_alloc&) {
    kw::launch_failed("out of memory");
  } catch (const std::exception& error) {
    kw::harness_fault("%s", error.what());
  }
  // Static destructors would join nothing and free nothing that matters: leave at once.
  quick_exit(0);
}
