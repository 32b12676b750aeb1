#include "traffic.h"

#include <algorithm>
#include <cmath>

#include "../runtime/report.h"

namespace kw {
namespace {
constexpr size_t kSector = 32;  // bytes; the unit of global memory traffic since Volta
constexpr size_t kBanks = 32, kBankBytes = 4;

size_t distinct(std::vector<uintptr_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values.size();
}
}  // namespace

void Traffic::add(const Access& access, bool shared, unsigned rank) {
  const auto [place, added] = index_.try_emplace(access.pc, static_cast<uint32_t>(instructions_.size()));
  if (added) instructions_.push_back({access.pc, shared, access.write, access.bytes});
  const uint64_t id = place->second;
  instructions_[id].executed++;
  const uint64_t execution = executions_[id << 32 | rank]++;
  if (execution >= kExecutions) return;
  Request& request = requests_[id << 40 | static_cast<uint64_t>(rank / 32) << 34 | execution];
  if (request.count < 32) request.address[request.count++] = access.address;
}

void Traffic::end_block() {
  for (const auto& [key, request] : requests_) {
    Instruction& instruction = instructions_[key >> 40];
    instruction.requests++;
    instruction.lanes += request.count;
    if (instruction.shared) {
      add_shared(instruction, request);
    } else {
      add_global(instruction, request);
    }
  }
  requests_.clear();
  executions_.clear();
}

void Traffic::add_global(Instruction& instruction, const Request& request) {
  std::vector<uintptr_t> sectors;
  for (unsigned i = 0; i < request.count; i++) {
    const uintptr_t last = (request.address[i] + instruction.bytes - 1) / kSector;
    for (uintptr_t s = request.address[i] / kSector; s <= last; s++) sectors.push_back(s);
  }
  instruction.units += distinct(sectors);
  instruction.ideal += (request.count * instruction.bytes + kSector - 1) / kSector;
}

// Accesses of 8 and 16 bytes are served a half and a quarter of the warp at a time. Within one part, each
// bank serves one 4-byte word a wavefront; lanes that read the same word share it.
void Traffic::add_shared(Instruction& instruction, const Request& request) {
  const size_t words_each = std::max<size_t>(1, instruction.bytes / kBankBytes);
  const size_t lanes_each =
      instruction.bytes <= kBankBytes ? 32 : std::max<size_t>(1, 128 / instruction.bytes);
  for (size_t first = 0; first < request.count; first += lanes_each) {
    std::vector<uintptr_t> words;
    for (size_t i = first; i < std::min<size_t>(request.count, first + lanes_each); i++) {
      for (size_t w = 0; w < words_each; w++) words.push_back(request.address[i] / kBankBytes + w);
    }
    distinct(words);
    unsigned bank[kBanks] = {}, waves = 0;
    for (const uintptr_t word : words) waves = std::max(waves, ++bank[word % kBanks]);
    instruction.units += waves;
    instruction.ideal++;
  }
}

void Traffic::report_all() const {
  for (const Instruction& i : instructions_) {
    if (i.requests == 0) continue;
    const double scale = static_cast<double>(i.executed) / static_cast<double>(i.lanes);
    const auto all = [scale](uint64_t seen) { return std::llround(scale * static_cast<double>(seen)); };
    report("metric\t%p\t%s\t%s\t%zu\t%lld\t%lld\t%lld\t%lld", i.pc, i.shared ? "shared" : "global",
           i.write ? "store" : "load", i.bytes, all(i.requests), all(i.lanes), all(i.units), all(i.ideal));
  }
}
}  // namespace kw
