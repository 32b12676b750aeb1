#include "report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace kw {
namespace {
constexpr size_t kMaxLine = 1024;
constexpr unsigned kMaxFindings = 64;
constexpr size_t kMaxPrinted = 4096;

struct Reporter {
  std::mutex mutex;
  int fd = -1;
  unsigned findings = 0;
  unsigned failures = 0;
  size_t printed = 0;
  char log[kMaxPrinted];
};

// One a process: kernels, signal handlers and workers all report to the same pipe.
Reporter& reporter() {
  static Reporter instance;
  return instance;
}

void write_line(const char* prefix, const char* format, va_list arguments) {
  char line[kMaxLine];
  int used = snprintf(line, sizeof line, "%s", prefix);
  const int body = vsnprintf(line + used, sizeof line - static_cast<size_t>(used), format, arguments);
  used = std::min<int>(used + std::max(body, 0), kMaxLine - 2);
  for (int i = 0; i < used; i++) {
    if (line[i] == '\n') line[i] = ' ';  // a line stays one line, whatever is in it
  }
  line[used++] = '\n';
  for (int sent = 0; sent < used;) {
    const ssize_t n = write(reporter().fd, line + sent, static_cast<size_t>(used - sent));
    if (n <= 0) return;
    sent += static_cast<int>(n);
  }
}

[[noreturn]] void end_with(const char* prefix, const char* format, va_list arguments) {
  write_line(prefix, format, arguments);
  _exit(0);
}
}  // namespace

void report_to(int fd) { reporter().fd = fd; }

void report(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  write_line("", format, arguments);
  va_end(arguments);
}

void report_finding(const char* kind, const char* format, ...) {
  const std::lock_guard<std::mutex> lock(reporter().mutex);
  if (strncmp(kind, "note", 4) != 0) reporter().failures++;
  if (reporter().findings++ >= kMaxFindings) return;
  char prefix[64];
  snprintf(prefix, sizeof prefix, "finding\t%s\t", kind);
  va_list arguments;
  va_start(arguments, format);
  write_line(prefix, format, arguments);
  va_end(arguments);
}

unsigned failures() {
  const std::lock_guard<std::mutex> lock(reporter().mutex);
  return reporter().failures;
}

void harness_fault(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  end_with("fault\t", format, arguments);
}

void launch_failed(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  end_with("launch\t", format, arguments);
}

int print(const char* format, va_list arguments) {
  const std::lock_guard<std::mutex> lock(reporter().mutex);
  const size_t room = kMaxPrinted - reporter().printed;
  const int length = vsnprintf(reporter().log + reporter().printed, room, format, arguments);
  if (length > 0) reporter().printed += std::min(static_cast<size_t>(length), room - 1);
  return length;
}

void report_printed() {
  const Reporter& r = reporter();
  for (size_t at = 0; at < r.printed;) {
    const char* line = r.log + at;
    const size_t length = strcspn(line, "\n");
    report("printed\t%.*s", static_cast<int>(std::min<size_t>(length, kMaxLine)), line);
    at += length + 1;
  }
}
}  // namespace kw
