#include "print.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "hooks.h"
#include "report.h"

namespace kw {
namespace {
constexpr size_t kMaxText = 1024;
constexpr size_t kMaxSpec = 32;

// Not the C library's printf: that one reads and writes for the kernel (%s, %n) where nobody watches. Here
// every byte of a format and of a string is watched as a read of the kernel's own, and the C library gets plain
// values alone.
class Printer {
 public:
  Printer(const char* format, va_list arguments, const void* where) : at_(format), where_(where) {
    va_copy(arguments_, arguments);
  }
  ~Printer() { va_end(arguments_); }
  Printer(const Printer&) = delete;
  Printer& operator=(const Printer&) = delete;

  int run() {
    while (const char c = take()) {
      if (c != '%') {
        add("%c", c);
      } else if (!convert()) {
        break;
      }
    }
    keep_printed(text_, used_);
    return printed_;
  }

 private:
  char read(const char* at) const {
    on_read(at, 1, where_);
    return *at;
  }
  char take() {
    const char c = read(at_);
    at_ += c != 0;
    return c;
  }

  template <class T>
  void add(const char* spec, T value) {
    const size_t room = sizeof text_ - used_;
    const int length = snprintf(text_ + used_, room, spec, value);
    used_ += std::min(static_cast<size_t>(std::max(length, 0)), room - 1);
  }

  // What follows a percent sign. False at what is no conversion: nobody knows what its argument is.
  bool convert() {
    spec_used_ = 0;
    keep('%');
    char c = take();
    for (; c != 0 && strchr("-+ #0", c) != nullptr; c = take()) keep(c);
    c = number(c);
    precision_ = -1;
    if (c == '.') {
      keep(c);
      precision_ = 0;
      c = number(take(), &precision_);
    }
    int longs = 0, shorts = 0;
    for (; c == 'l'; c = take()) longs++;
    for (; c == 'h'; c = take()) shorts++;
    if (c == '%') {
      add("%c", c);
      return true;
    }
    printed_++;
    return value(c, longs, shorts);
  }

  bool value(char type, int longs, int shorts) {
    switch (type) {
      case 'd':
      case 'i':
      case 'o':
      case 'u':
      case 'x':
      case 'X':
        if (longs > 0) {
          add(spec("ll", type), va_arg(arguments_, long long));
        } else {
          add(spec(shorts > 1 ? "hh" : shorts > 0 ? "h" : "", type), va_arg(arguments_, int));
        }
        return true;
      case 'c': add(spec("", type), va_arg(arguments_, int)); return true;
      case 'p': add(spec("", type), va_arg(arguments_, void*)); return true;
      case 's': add_string(va_arg(arguments_, const char*)); return true;
      case 'e':
      case 'E':
      case 'f':
      case 'g':
      case 'G':
      case 'a':
      case 'A': add(spec("", type), va_arg(arguments_, double)); return true;
      default: return none_of_cuda_s(type);
    }
  }

  bool none_of_cuda_s(char type) {
    printed_--;
    report_finding("printf", "@%p printf: %%%c is no conversion that CUDA has", where_, type == 0 ? ' ' : type);
    return false;
  }

  void add_string(const char* string) {
    char copy[kMaxText] = "(null)";
    if (string != nullptr) {
      const size_t most = precision_ < 0 ? sizeof copy - 1 : std::min<size_t>(precision_, sizeof copy - 1);
      size_t length = 0;
      while (length < most && (copy[length] = read(string + length)) != 0) length++;
      copy[length] = 0;
    }
    add(spec("", 's'), static_cast<const char*>(copy));
  }

  // A width or a precision: digits, or an argument. Returns what follows it.
  char number(char c, int* value = nullptr) {
    int found = 0;
    if (c == '*') {
      found = std::max(0, std::min(va_arg(arguments_, int), static_cast<int>(kMaxText)));
      c = take();
    } else {
      for (; c >= '0' && c <= '9'; c = take()) found = std::min(found * 10 + c - '0', static_cast<int>(kMaxText));
    }
    if (found > 0) {
      char digits[12];
      snprintf(digits, sizeof digits, "%d", found);
      for (const char* digit = digits; *digit != 0; digit++) keep(*digit);
    }
    if (value != nullptr) *value = found;
    return c;
  }

  void keep(char c) {
    if (spec_used_ < kMaxSpec - 4) spec_[spec_used_++] = c;
  }
  const char* spec(const char* length, char type) {
    snprintf(spec_ + spec_used_, sizeof spec_ - spec_used_, "%s%c", length, type);
    return spec_;
  }

  const char* at_;
  const void* where_;
  va_list arguments_;
  char text_[kMaxText] = "";
  size_t used_ = 0;
  char spec_[kMaxSpec];  // of the conversion, as the C library takes it
  size_t spec_used_ = 0;
  int precision_ = -1, printed_ = 0;
};
}  // namespace

int print(const char* format, va_list arguments, const void* where) {
  return format == nullptr ? -1 : Printer(format, arguments, where).run();
}
}  // namespace kw
