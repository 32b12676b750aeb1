// What the runner tells the harness: one line a fact, on a file descriptor that only the runner writes to.
#pragma once
#include <cstddef>

namespace kw {
// Writes to `fd` from now on.
void report_to(int fd);

// One fact: fields separated by tabs, ended by a newline. Longer than 1 KiB is cut.
void report(const char* format, ...) __attribute__((format(printf, 1, 2)));

// A finding of `kind` in the kernel. After 64 findings the rest is only counted.
// A finding whose kind does not start with "note" makes the run fail.
void report_finding(const char* kind, const char* format, ...) __attribute__((format(printf, 2, 3)));

// Findings so far that make the run fail.
unsigned failures();

// Ends the process because the harness asked for something impossible; not the candidate's fault.
[[noreturn]] void harness_fault(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Ends the process because the launch is not possible.
[[noreturn]] void launch_failed(const char* format, ...) __attribute__((format(printf, 1, 2)));

// What kernels print: kept in a bounded buffer that a run shares with its watcher, which reports it at the end.
void share_print_log();
void keep_printed(const char* text, size_t length);
void report_printed();
}  // namespace kw
