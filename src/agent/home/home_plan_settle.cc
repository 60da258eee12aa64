// Who waits for files to be at home, and what they are told.
#include <algorithm>

#include "agent/home/home_plan.h"

namespace backstay::agent {

namespace {

// What is said of a path, all below a folder, or all.
bool asks_for_many(const std::string& asked) { return asked.empty() || asked.back() == '/'; }

}  // namespace

// Calls use(key, keys of its path) for each record that `asked` means.
template <typename Use>
void HomePlan::for_each_in(const std::string& asked, Use use) const {
  auto at = paths_.lower_bound(asked);
  for (; at != paths_.end() && at->first.starts_with(asked); ++at) {
    if (!asks_for_many(asked) && at->first != asked) return;
    for (const Key& key : at->second) use(key, at->second);
  }
}

void HomePlan::settle(std::uint64_t ticket, std::string path, std::uint64_t now_ns) {
  std::vector<Key> keys;
  for_each_in(path, [&](const Key& key, const std::set<Key>&) { keys.push_back(key); });
  for (const Key& key : keys) retry_now(key);
  for (auto& [number, version] : versions_) version.next_ns = std::min(version.next_ns, now_ns);
  asked_[ticket] = {std::move(path), answers_ + (is_bringing() ? works_.size() : 0)};
  answer_all();
}

bool HomePlan::is_bringing() const {
  return works() && std::holds_alternative<BringFile>(works_.front().order);
}

// A question for it came after its last try had begun. That try may have found the file held, and
// the program may have let it go before the question.
bool HomePlan::is_wanted_again(const Key& key) const {
  const File& file = file_of(key);
  return std::ranges::any_of(asked_, [&](const auto& entry) {
    const Asked& asked = entry.second;
    const bool meant = asks_for_many(asked.path) ? file.path->first.starts_with(asked.path)
                                                 : file.path->first == asked.path;
    return meant && asked.since >= file.tried;
  });
}

void HomePlan::answer_all() {
  std::erase_if(asked_, [this](const auto& entry) {
    Outcome outcome = outcome_of(entry.second);
    if (!outcome) return false;
    news_.answers.push_back({entry.first, std::move(*outcome), why_kept(entry.second.path)});
    return true;
  });
}

std::string HomePlan::why_kept(const std::string& path) const {
  const auto at = paths_.find(path);
  if (at == paths_.end()) return "";
  const File& newest = file_of(*at->second.rbegin());
  return newest.state == State::kept ? newest.why : "";
}

// An error only once nothing that was asked for is under way.
HomePlan::Outcome HomePlan::outcome_of(const Asked& asked) const {
  Status all;
  bool under_way = false;
  const auto take = [&](const Outcome& one) {
    if (!one) under_way = true;
    if (one && all.ok()) all = *one;
  };
  for (const auto& [number, version] : versions_) take(outcome_of(version, asked));
  if (under_way) return std::nullopt;
  for_each_in(asked.path, [&](const Key& key, const std::set<Key>& keys) {
    if (!under_way) take(outcome_of(key, keys, asked));
  });
  if (under_way) return std::nullopt;
  return all;
}

// Its files are not known yet: any of them may be asked for.
HomePlan::Outcome HomePlan::outcome_of(const Version& version, const Asked& asked) const {
  if (version.stage == Stage::known) return Status();
  if (!version.trouble) return std::nullopt;
  if (is_called_back(version)) return Status();
  // What was not written to the disk may never be: who asks later is told, too.
  const bool told = version.stage == Stage::expected || version.tried > asked.since;
  return told ? Outcome(*version.trouble) : std::nullopt;
}

HomePlan::Outcome HomePlan::outcome_of(const Key& key, const std::set<Key>& keys,
                                       const Asked& asked) const {
  const Version& version = versions_.at(key.version);
  const File& file = version.files[key.index];
  switch (file.state) {
    case State::home:
    case State::kept: return Status();
    case State::brought:
    case State::overtaken: {  // the mark is missing
      const bool failed = version.trouble && version.tried > asked.since;
      return failed ? Outcome(*version.trouble) : std::nullopt;
    }
    case State::waiting: break;
  }
  if (key != *keys.rbegin()) return Status();  // the newest counts
  const bool failed = file.code != Code::ok && file.tried > asked.since;
  if (!failed) return std::nullopt;
  if (version.held) return Status();  // what its program has open is not awaited
  return Error(file.code, file.why);
}

}  // namespace backstay::agent
