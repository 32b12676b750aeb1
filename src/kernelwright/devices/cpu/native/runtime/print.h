// The device's printf, with CUDA's conversions.
#pragma once
#include <cstdarg>

namespace kw {
// Formats and keeps the text (keep_printed in report.h); at most 1 KiB of one call. Returns how many arguments
// were printed, as CUDA does, and -1 without a format. `where` is the call in the candidate's code: the reads are its.
int print(const char* format, va_list arguments, const void* where);
}  // namespace kw
