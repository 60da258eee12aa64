// A program renames files that are not at their paths yet.
#include <algorithm>

#include "agent/home/home_plan.h"

namespace backstay::agent {

Status HomePlan::move(VersionNumber number, const std::string& from, const std::string& to,
                      std::uint64_t placed_ns) {
  const auto at = versions_.find(number);
  if (at == versions_.end()) return Error(Code::not_found, "this version is not known");
  Version& version = at->second;
  if (version.stage == Stage::known) {
    for (std::size_t index = 0; index < version.files.size(); ++index) {
      const File& file = version.files[index];
      if (file.path->first != from) continue;
      return move_file({file.placed_ns, number, index}, {to, placed_ns});
    }
    return Error(Code::not_found, from + " is no file of this version");
  }
  if (version.trouble && !to.empty()) return *version.trouble;
  if (on_its_way(nullptr, to) != nullptr) return Error(Code::busy, to + " is on its way");
  const auto moved_before =
      std::ranges::find_if(version.moved, [&](const auto& one) { return one.second.to == from; });
  Moved& moved = moved_before != version.moved.end() ? moved_before->second : version.moved[from];
  // One that is to come nowhere stays a record of the path that it had, of the same age there.
  moved = {to, to.empty() ? moved.placed_ns : placed_ns, from};
  answer_all();
  return {};
}

bool HomePlan::is_called_back(VersionNumber number) const {
  const auto at = versions_.find(number);
  return at != versions_.end() && is_called_back(at->second);
}

// Who captures hands in each file as a version of its own.
bool HomePlan::is_called_back(const Version& version) {
  return version.stage == Stage::expected && !version.moved.empty() &&
         std::ranges::all_of(version.moved, [](const auto& one) { return one.second.to.empty(); });
}

bool HomePlan::is_renamed(VersionNumber number) const {
  const auto at = versions_.find(number);
  if (at == versions_.end()) return false;
  const Version& version = at->second;
  if (version.stage != Stage::known)
    return std::ranges::any_of(version.moved,
                               [](const auto& one) { return !one.second.to.empty(); });
  return std::ranges::any_of(version.files, [](const File& file) {
    return file.state == State::waiting && !file.named.empty();
  });
}

// What it had overtaken at its former path stays so. What is to come nowhere stays a record of its
// path, and is at home with the next mark. A kept file that is moved to its own path is to come
// there all the same.
Status HomePlan::move_file(const Key& key, const Moved& moved) {
  if (const BringFile* file = on_its_way(&key, moved.to)) {
    return Error(Code::busy, file->to + " is on its way");
  }
  const State state = file_of(key).state;
  const auto from = file_of(key).path;
  const bool stays = moved.to == from->first;
  const bool may_be_kept = moved.to.empty() || stays;
  if (state != State::waiting && !(state == State::kept && may_be_kept)) {
    return Error(Code::state, "the file is at its path, or will not be brought there");
  }
  overtake(from->first, key);
  unschedule(key);
  if (moved.to.empty()) {
    change(key, State::overtaken);
    versions_.at(key.version).needs_mark();
    versions_.at(key.version).held = false;
    return {};
  }
  if (state == State::kept) {
    change(key, State::waiting);
    versions_.at(key.version).needs_mark();
  }
  File& file = file_of(key);
  if (file.named.empty() && !stays) file.named = from->first;
  from->second.erase(key);
  if (from->second.empty()) {
    paths_.erase(from);
  } else {
    schedule(*from->second.rbegin());
  }
  file.path = paths_.try_emplace(moved.to).first;
  file.placed_ns = moved.placed_ns;
  file.next_ns = 0;
  file.tries = 0;
  put_at_path({moved.placed_ns, key.version, key.index});
  return {};
}

}  // namespace backstay::agent
