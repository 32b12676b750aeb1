#include "candidate.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "report.h"

namespace kw {
namespace {
struct ScalarType {
  unsigned bytes;
  char kind;  // i integer, f floating
};

const std::map<std::string, ScalarType>& scalar_types() {
  static const std::map<std::string, ScalarType> types = {
      {"int8", {1, 'i'}},  {"uint8", {1, 'i'}},   {"int16", {2, 'i'}},  {"uint16", {2, 'i'}},
      {"int32", {4, 'i'}}, {"uint32", {4, 'i'}},  {"int64", {8, 'i'}},  {"uint64", {8, 'i'}},
      {"bool", {1, 'i'}},  {"float32", {4, 'f'}}, {"float64", {8, 'f'}}};
  return types;
}

// The parameter letters of entry.h.
struct Parameter {
  const char* name;
  unsigned bytes;
  char kind;  // p pointer, i integer, f floating, v anything else
};

Parameter parameter(char code) {
  switch (code) {
    case 'P': return {"a pointer", 8, 'p'};
    case 'C': return {"a pointer to const", 8, 'p'};
    case 'f': return {"float", 4, 'f'};
    case 'd': return {"double", 8, 'f'};
    case '?': return {"bool", 1, 'i'};
    case 'b': return {"a signed 8-bit integer", 1, 'i'};
    case 'B': return {"an unsigned 8-bit integer", 1, 'i'};
    case 'h': return {"a 16-bit integer", 2, 'i'};
    case 'H': return {"an unsigned 16-bit integer", 2, 'i'};
    case 'i': return {"int", 4, 'i'};
    case 'I': return {"unsigned int", 4, 'i'};
    case 'q': return {"a 64-bit integer", 8, 'i'};
    case 'Q': return {"an unsigned 64-bit integer", 8, 'i'};
    default: return {"a type that no plan can pass", 0, 'v'};
  }
}

uint64_t scalar_bits(const ArgumentSpec& argument) {
  const ScalarType type = scalar_types().at(argument.dtype);
  uint64_t bits = 0;
  if (type.kind == 'f' && type.bytes == 4) {
    const float value = strtof(argument.value.c_str(), nullptr);
    memcpy(&bits, &value, sizeof value);
  } else if (type.kind == 'f') {
    const double value = strtod(argument.value.c_str(), nullptr);
    memcpy(&bits, &value, sizeof value);
  } else if (argument.value[0] == '-') {
    bits = static_cast<uint64_t>(strtoll(argument.value.c_str(), nullptr, 10));
  } else {
    bits = strtoull(argument.value.c_str(), nullptr, 10);
  }
  return bits;
}
}  // namespace

Candidate::Candidate(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char *why = dlerror(), *behind_path = strstr(why, ": ");
    launch_failed("the candidate cannot be loaded%s", behind_path == nullptr ? "" : behind_path);
  }
  kernels_ = static_cast<const KwKernel*>(dlsym(library, "kw_kernels"));
  arena_ = reinterpret_cast<void* (*)()>(dlsym(library, "kw_arena"));
  if (kernels_ == nullptr || arena_ == nullptr) launch_failed("the candidate has no table of kernels");
  protect_constants();
}

// Device code has no writable globals (the build refuses them): whatever claims to be a constant is one.
void Candidate::protect_constants() const {
  const Range library = find_library(kernels_);
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
        for (int i = 0; i < info->dlpi_phnum; i++) {
          const ElfW(Phdr) & header = info->dlpi_phdr[i];
          const uintptr_t begin = info->dlpi_addr + header.p_vaddr, end = begin + header.p_memsz;
          if (header.p_type != PT_LOAD || !(header.p_flags & PF_W)) continue;
          if (!static_cast<const Range*>(data)->contains(begin)) continue;
          const uintptr_t from = begin / page * page;
          if (mprotect(reinterpret_cast<void*>(from), end - from, PROT_READ) != 0) {
            harness_fault("the candidate's constants cannot be protected");
          }
        }
        return 0;
      },
      const_cast<Range*>(&library));
}

Range Candidate::shared_memory(const Job& job) const {
  const uintptr_t begin = dynamic_shared() - job.arena_offset;
  return {begin, begin + job.shared_bytes};
}

const KwKernel* Candidate::kernel_for(const LaunchSpec& launch) const {
  const KwKernel* kernel = kernels_;
  while (kernel->name != nullptr && launch.kernel != kernel->name) kernel++;
  const char* name = launch.kernel.c_str();
  if (kernel->name == nullptr) launch_failed("kernel %s is not in the artifact", name);
  const size_t takes = strlen(kernel->signature), given = launch.arguments.size();
  if (takes != given) {
    launch_failed("kernel %s takes %zu arguments, the plan passes %zu", name, takes, given);
  }
  for (size_t i = 0; i < takes; i++) {
    const ArgumentSpec& argument = launch.arguments[i];
    const Parameter wanted = parameter(kernel->signature[i]);
    const auto known = scalar_types().find(argument.dtype);
    const bool fits = argument.is_buffer
                          ? wanted.kind == 'p'
                          : known != scalar_types().end() && known->second.kind == wanted.kind &&
                                known->second.bytes == wanted.bytes;
    if (!fits) {
      launch_failed("kernel %s: parameter %zu is %s, the plan passes %s", name, i + 1, wanted.name,
                    argument.is_buffer ? "a buffer" : argument.dtype.c_str());
    }
  }
  return kernel;
}

Arguments::Arguments(const LaunchSpec& launch, const RunSpec& run, const Memory& memory) {
  for (const ArgumentSpec& argument : launch.arguments) {
    values_.push_back(argument.is_buffer
                          ? reinterpret_cast<uint64_t>(memory.data(run.bindings.at(argument.slot)))
                          : scalar_bits(argument));
  }
  for (uint64_t& value : values_) pointers_.push_back(&value);
}
}  // namespace kw
