#include "report.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace kw {
namespace {
constexpr size_t kMaxLine = 1024;
constexpr unsigned kMaxFindings = 64;
constexpr size_t kMaxPrinted = 4096;

// In memory shared with the run: whatever stands in it is only ever shown.
struct PrintLog {
  size_t used;
  char text[kMaxPrinted];
};

struct Reporter {
  std::mutex mutex;
  int fd = -1;
  unsigned findings = 0;
  unsigned failures = 0;
  PrintLog* log = nullptr;
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

void share_print_log() {
  void* page = mmap(nullptr, sizeof(PrintLog), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) launch_failed("out of memory: no room for what kernels print");
  reporter().log = static_cast<PrintLog*>(page);
}

void keep_printed(const char* text, size_t length) {
  const std::lock_guard<std::mutex> lock(reporter().mutex);
  PrintLog& log = *reporter().log;
  const size_t used = std::min(log.used, kMaxPrinted - 1), kept = std::min(length, kMaxPrinted - 1 - used);
  memcpy(log.text + used, text, kept);
  log.used = used + kept;
}

void report_printed() {
  PrintLog& log = *reporter().log;
  const size_t used = std::min(log.used, kMaxPrinted - 1);
  log.text[used] = 0;
  for (size_t at = 0; at < used;) {
    const char* line = log.text + at;
    const size_t length = strcspn(line, "\n");
    report("printed\t%.*s", static_cast<int>(std::min<size_t>(length, kMaxLine)), line);
    at += length + 1;
  }
}
}  // namespace kw
