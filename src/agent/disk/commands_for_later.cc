#include "agent/disk/commands_for_later.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace backstay::agent {

namespace {

// As each is carried out in a thread of its own.
constexpr std::size_t at_once_max = 32;

bool is_of_files(const SealVersion& seal) {
  const auto has_files = [](const auto& object) {
    return object.first.kind == format::ObjectKind::files;
  };
  return !seal.object_bytes.empty() && seal.older.needs.empty() &&
         std::ranges::all_of(seal.object_bytes, has_files);
}

}  // namespace

bool CommandsForLater::take(Command& command) {
  if (auto* seal = std::get_if<SealVersion>(&command); seal != nullptr && is_of_files(*seal)) {
    of_files_ = true;
    seals.push_back(std::move(*seal));
    return true;
  }
  if (!of_files_) return false;
  if (auto* record = std::get_if<RecordVersion>(&command)) {
    records.push_back(std::move(*record));
    return true;
  }
  if (auto* remove = std::get_if<RemoveVersions>(&command)) {
    removals.insert(removals.end(), remove->versions.begin(), remove->versions.end());
    return true;
  }
  return false;
}

// OpenVersion for a version that is opened again waits until its earlier seal has been carried out.
bool CommandsForLater::lets_pass(const Command& command) const {
  if (const auto* open = std::get_if<OpenVersion>(&command)) {
    return std::ranges::find(seals, open->info.version, &SealVersion::version) == seals.end();
  }
  return std::holds_alternative<WriteChunk>(command) ||
         std::holds_alternative<AppendEvent>(command);
}

bool CommandsForLater::full() const {
  return std::max({seals.size(), records.size(), removals.size()}) >= at_once_max;
}

CommandsForLater CommandsForLater::emptied() const {
  CommandsForLater other;
  other.of_files_ = of_files_;
  return other;
}

}  // namespace backstay::agent
