#include "agent/restart/version_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/group/remote_files.h"
#include "agent/restart/candidate.h"

namespace backstay::agent {

namespace {

constexpr std::size_t named_max = 8;  // a message has room for so many

}  // namespace

// The newest first.
std::string VersionChoice::text_of(const Troubles& troubles) {
  std::string text;
  std::size_t named = 0;
  for (const auto& [number, trouble] : troubles) {
    if (named++ == named_max) break;
    text += fmt::format("{}version {}: {}", text.empty() ? "" : "; ", number,
                        trouble.why.empty() ? "it cannot be read now" : trouble.why);
  }
  const bool all = troubles.size() <= named_max;
  return all ? text : fmt::format("{}; and {} more", text, troubles.size() - named_max);
}

VersionChoice::VersionChoice(const JobState& state, const wire::Restart& wanted)
    : state_(state), wanted_(wanted.version) {
  if (!goes_on()) {
    const RunId run = wanted.run != 0 ? wanted.run : known_run(wanted_);
    named_ = {wanted_, run};
  } else if (wanted_ != 0) {
    below_.below = wanted_ + 1;
  }
}

bool VersionChoice::goes_on() const { return state_.nodes == 1; }

// The newest run known here that has this version, else the present one.
RunId VersionChoice::known_run(VersionNumber number) const {
  if (const MemoryVersion* held = state_.whole_in_memory(number)) return held->info.run;
  if (const VersionRow* row = state_.versions.find(number)) {
    if (row->good()) return row->disk->record.run;
    if (row->durable()) return row->shared->record.run;
  }
  RunId run = state_.run;
  if (state_.around == nullptr) return run;
  for (const auto& [file, held] : state_.around->directory().held().all()) {
    if (file.version == number && held.record) run = file.run;
  }
  return run;
}

std::optional<VersionOfRun> VersionChoice::next() {
  if (!goes_on()) return std::exchange(named_, std::nullopt);
  for (;;) {
    const wire::Candidate candidate = newest_candidate(state_, below_);
    if (candidate.version == 0 || candidate.version < wanted_) return std::nullopt;
    below_ = {candidate.version, candidate.run};
    if (candidate.code != Code::ok) continue;  // damage() tells of it
    chosen_ = candidate.version;
    return VersionOfRun{candidate.version, candidate.run};
  }
}

void VersionChoice::given_up(const Error& why, std::uint32_t elsewhere_nodes) {
  troubles_[chosen_] = {why.code(), why.message()};
  if (elsewhere_nodes == 0) return;
  troubles_[chosen_].why = fmt::format("it was saved on {} nodes", elsewhere_nodes);
  elsewhere_ = true;
}

VersionChoice::Trouble VersionChoice::known_trouble(const StoredVersion& stored) {
  return {stored.unreadable ? Code::io : Code::corrupt, stored.damage};
}

// Of the versions that were given up, and of those that are known to be damaged.
VersionChoice::Troubles VersionChoice::damage() const {
  Troubles all = troubles_;
  for (const auto& [number, row] : state_.versions.rows()) {
    if (row.is_listed() && !row.disk->damage.empty()) {
      all.try_emplace(number, known_trouble(*row.disk));
    }
    if (row.shared && !row.shared->good()) all.try_emplace(number, known_trouble(*row.shared));
  }
  return all;
}

// What is `lacking` lies on other nodes.
Error VersionChoice::not_here(const std::string& lacking) const {
  return {Code::not_found,
          fmt::format("{} of job {} can be brought back from this node alone; {}; start the job on "
                      "nodes that have the other parts or copies of them, or, where parity is "
                      "kept, on this one and any second one, which may be empty",
                      lacking, state_.name, text_of(troubles_))};
}

bool VersionChoice::is_known() const {
  const VersionRow* row = state_.versions.find(wanted_);
  return !troubles_.empty() || (row != nullptr && (row->is_listed() || row->shared));
}

Error VersionChoice::not_wanted() const {
  if (elsewhere_) return not_here(fmt::format("not all of version {}", wanted_));
  const std::string version = fmt::format("version {} of job {}", wanted_, state_.name);
  if (!is_known()) {
    return {Code::not_found, fmt::format("{} does not exist; `backstay ls {}` lists what there is",
                                         version, state_.name)};
  }
  const Troubles all = damage();
  const auto found = all.find(wanted_);  // missing where nothing is known against it
  const auto [code, why] = found == all.end() ? Trouble{} : found->second;
  const char* state = code == Code::corrupt ? "is damaged" : "cannot be brought back now";
  return {code, fmt::format("{} {}{}{}", version, state, why.empty() ? "" : ": ", why)};
}

Error VersionChoice::nothing() const {
  if (wanted_ != 0) return not_wanted();
  // It is unknown what is there: not the time to begin again.
  if (const auto& why = state_.versions.why_shared_unreadable()) {
    return {why->code(), why->message()};
  }
  const Troubles all = damage();
  if (all.empty()) return {Code::none, "no version of this job exists yet"};
  if (elsewhere_) return not_here("no version");
  const bool may_pass =
      std::ranges::any_of(all, [](const auto& one) { return one.second.code == Code::io; });
  return {may_pass ? Code::io : Code::corrupt,
          fmt::format("no version of job {} can be brought back: {}", state_.name, text_of(all))};
}

}  // namespace backstay::agent
