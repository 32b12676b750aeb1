#include "job.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <istream>
#include <streambuf>

#include "report.h"

namespace kw {
namespace {
constexpr size_t kDigits = 16;  // of the length that stands before each part

// One part of a job, in memory of its own that is given back.
class Part : std::streambuf {
 public:
  explicit Part(int fd) {
    char digits[kDigits + 1] = {};
    if (fill(fd, digits, kDigits) == 0) return;
    size_ = strtoull(digits, nullptr, 10);
    void* room = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) launch_failed("out of memory: no room for the job");
    text_ = static_cast<char*>(room);
    if (fill(fd, text_, size_) != size_) harness_fault("the job is cut");
    setg(text_, text_, text_ + size_);
  }
  ~Part() override {
    if (text_ != nullptr) munmap(text_, size_);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  bool is_there() const { return text_ != nullptr; }
  std::streambuf* buffer() { return this; }

 private:
  static size_t fill(int fd, char* to, size_t bytes) {
    size_t got = 0;
    while (got < bytes) {
      const ssize_t n = read(fd, to + got, bytes - got);
      if (n < 0) harness_fault("the job cannot be read");
      if (n == 0) break;
      got += static_cast<size_t>(n);
    }
    return got;
  }

  char* text_ = nullptr;
  size_t size_ = 0;
};

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

void read_run_line(std::istream& in, RunSpec& r) {
  in >> r.order >> r.seed >> r.clock;
  read_list(in, r.bindings, [&in](unsigned& region) { in >> region; });
  read_list(in, r.fills, [&in](Fill& fill) { in >> fill.region >> fill.pattern; });
  read_list(in, r.copies, [&in](Copy& copy) { in >> copy.to >> copy.from; });
}

// Calls `read_entry` with the word that each entry begins with.
template <class ReadEntry>
void read_entries(std::istream& in, ReadEntry read_entry) {
  for (std::string word; in >> word;) {
    read_entry(word);
    if (!in) harness_fault("the job's entry %s is malformed", word.c_str());
  }
}

[[noreturn]] void unknown(const std::string& word) { harness_fault("the job has the unknown word %s", word.c_str()); }
}  // namespace

Job read_job(int fd) {
  Part part(fd);
  std::istream in(part.buffer());
  Job job;
  read_entries(in, [&](const std::string& word) {
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
    } else if (word == "storage") {
      in >> job.arena_offset >> job.shared_bytes;
    } else if (word == "shared") {
      SharedSpec array;
      in >> array.name >> array.offset >> array.bytes;
      job.shared_arrays.push_back(array);
    } else if (word == "launch") {
      job.launches.push_back(read_launch(in));
    } else {
      unknown(word);
    }
  });
  return job;
}

bool read_run(int fd, RunSpec& run) {
  Part part(fd);
  if (!part.is_there()) return false;
  std::istream in(part.buffer());
  read_entries(in, [&](const std::string& word) {
    if (word == "region") {
      run.regions.push_back(read_region(in));
    } else if (word == "run") {
      read_run_line(in, run);
    } else {
      unknown(word);
    }
  });
  return true;
}
}  // namespace kw
