#include "job.h"

#include <unistd.h>

#include <sstream>

#include "report.h"

namespace kw {
namespace {
std::string read_all(int fd) {
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0) harness_fault("the job cannot be read");
    if (n == 0) return text;
    text.append(buffer, static_cast<size_t>(n));
  }
}

// Lists are written as their length, then their elements.
template <class T, class ReadOne>
void read_list(std::istream& in, std::vector<T>& list, ReadOne read_one) {
  size_t count = 0;
  in >> count;
  if (!in || count > 1000000) harness_fault("a list of the job is malformed");
  list.resize(count);
  for (T& element : list) read_one(element);
}

RegionSpec read_region(std::istream& in) {
  RegionSpec r;
  in >> r.name >> r.dtype >> r.fd >> r.file_offset >> r.map_bytes >> r.data_offset >> r.bytes >>
      r.element_bytes >> r.writable >> r.must_be_written;
  return r;
}

LaunchSpec read_launch(std::istream& in) {
  LaunchSpec l;
  in >> l.kernel;
  for (unsigned& extent : l.grid) in >> extent;
  for (unsigned& extent : l.block) in >> extent;
  in >> l.dynamic_shared_bytes;
  read_list(in, l.arguments, [&in](ArgumentSpec& a) {
    in >> a.is_buffer;
    if (a.is_buffer) {
      in >> a.slot;
    } else {
      in >> a.dtype >> a.value;
    }
  });
  return l;
}

RunSpec read_run(std::istream& in) {
  RunSpec r;
  in >> r.order >> r.seed >> r.clock;
  read_list(in, r.bindings, [&in](unsigned& region) { in >> region; });
  read_list(in, r.fills, [&in](Fill& fill) { in >> fill.region >> fill.pattern; });
  read_list(in, r.copies, [&in](Copy& copy) { in >> copy.to >> copy.from; });
  return r;
}
}  // namespace

Job read_job(int fd) {
  std::istringstream in(read_all(fd));
  Job job;
  for (std::string word; in >> word;) {
    if (word == "threads") {
      in >> job.threads;
    } else if (word == "stack") {
      in >> job.stack_bytes;
    } else if (word == "memory") {
      in >> job.memory_bytes;
    } else if (word == "seconds") {
      in >> job.cpu_seconds;
    } else if (word == "metrics") {
      in >> job.metrics;
    } else if (word == "region") {
      job.regions.push_back(read_region(in));
    } else if (word == "storage") {
      in >> job.arena_offset >> job.shared_bytes;
    } else if (word == "shared") {
      SharedSpec array;
      in >> array.name >> array.offset >> array.bytes;
      job.shared_arrays.push_back(array);
    } else if (word == "launch") {
      job.launches.push_back(read_launch(in));
    } else if (word == "run") {
      job.runs.push_back(read_run(in));
    } else {
      harness_fault("the job has the unknown word %s", word.c_str());
    }
    if (!in) harness_fault("the job's entry %s is malformed", word.c_str());
  }
  return job;
}
}  // namespace kw
