#include "agent/checkpoint/written_files.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace backstay::agent {

namespace {

double seconds(std::uint64_t ns) { return 1e-9 * static_cast<double>(ns); }

nlohmann::json files(std::uint64_t count, std::uint64_t bytes) {
  return {{"files", count}, {"bytes", bytes}};
}

}  // namespace

void record_writes(const JobState& state, const wire::NoteWrites& noted) {
  nlohmann::json sizes = nlohmann::json::array();
  for (const wire::WriteSize& one : noted.sizes) {
    sizes.push_back({{"below", one.below},
                     {"writes", one.writes},
                     {"bytes", one.bytes},
                     {"seconds", seconds(one.ns)}});
  }
  nlohmann::json waits = nlohmann::json::array();
  for (const wire::CallWait& one : noted.waits) {
    waits.push_back({{"call", one.call},
                     {"calls", one.calls},
                     {"seconds", seconds(one.ns)},
                     {"longest", seconds(one.longest_ns)}});
  }
  state.record("files_written", {{"captured", files(noted.captured_files, noted.captured_bytes)},
                                 {"direct", files(noted.direct_files, noted.direct_bytes)},
                                 {"real", files(noted.real_files, noted.real_bytes)},
                                 {"writes", std::move(sizes)},
                                 {"waits", std::move(waits)}});
}

}  // namespace backstay::agent
