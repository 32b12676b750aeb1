#include "library.h"

#include <link.h>

#include <algorithm>

namespace kw {
Range find_library(const void* inside) {
  struct Search {
    uintptr_t inside;
    Range found;
  } search{reinterpret_cast<uintptr_t>(inside), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        Range range{UINTPTR_MAX, 0};
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const ElfW(Phdr) & header = info->dlpi_phdr[i];
          if (header.p_type != PT_LOAD) continue;
          range.begin = std::min(range.begin, info->dlpi_addr + header.p_vaddr);
          range.end = std::max(range.end, info->dlpi_addr + header.p_vaddr + header.p_memsz);
        }
        if (!range.contains(s.inside)) return 0;
        s.found = range;
        return 1;
      },
      &search);
  return search.found;
}
}  // namespace kw
