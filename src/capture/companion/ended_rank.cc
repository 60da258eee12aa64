#include "capture/companion/ended_rank.h"

#include <cstring>

#include "base/checksum.h"

namespace backstay::image {
namespace {

constexpr std::string_view note_ended = "ended";

}  // namespace

EndedRank::EndedRank(const client::Origin& origin, VersionNumber base) : base_(base) {
  auto notes = origin.notes();
  notes.push_back({std::string(note_ended), "0"});  // the exit code: another one ends the job
  object_ = format::encode_tail({}, 0, notes);
}

Result<std::uint64_t> EndedRank::read_next(std::span<std::byte> to) {
  BACKSTAY_CHECK(to.size() <= object_.size() - read_);
  std::memcpy(to.data(), object_.data() + read_, to.size());
  read_ += to.size();
  return checksum(to);
}

bool is_of_ended_rank(const format::Table& table) {
  return table.regions.empty() && !table.note(note_ended).empty();
}

}  // namespace backstay::image
