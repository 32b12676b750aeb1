#include "library.h"

#include <link.h>

#include <algorithm>

namespace kw {
Library find_library(const void* inside) {
  struct Search {
    uintptr_t inside;
    Library found;
  } search{reinterpret_cast<uintptr_t>(inside), {}};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto& s = *static_cast<Search*>(data);
        Library library{UINTPTR_MAX, 0, 0, 0};
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const ElfW(Phdr)& header = info->dlpi_phdr[i];
          if (header.p_type == PT_LOAD) {
            library.begin = std::min(library.begin, info->dlpi_addr + header.p_vaddr);
            library.end = std::max(library.end, info->dlpi_addr + header.p_vaddr + header.p_memsz);
          } else if (header.p_type == PT_TLS) {
            library.tls_begin = reinterpret_cast<uintptr_t>(info->dlpi_tls_data);
            library.tls_end = library.tls_begin + header.p_memsz;
          }
        }
        if (!library.contains(s.inside)) return 0;
        s.found = library;
        return 1;
      },
      &search);
  return search.found;
}
}  // namespace kw
