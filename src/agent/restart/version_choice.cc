#include "agent/restart/version_choice.h"

#include <fmt/format.h>

#include <utility>

#include "agent/group/remote_files.h"
#include "agent/restart/candidate.h"

namespace backstay::agent {

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
  if (why.code() == Code::again) return;  // removed meanwhile
  trouble_ = fmt::format("version {}: {}", chosen_, why.message());
  if (elsewhere_nodes == 0) return;
  trouble_ = fmt::format("version {} was saved on {} nodes", chosen_, elsewhere_nodes);
  elsewhere_ = true;
}

// Of the versions that were given up, else of the oldest one that is known to be damaged.
std::string VersionChoice::damage() const {
  if (!trouble_.empty()) return trouble_;
  std::string shared;
  const auto text = [](const StoredVersion& stored) {
    return fmt::format("version {}: {}", stored.version, stored.damage);
  };
  for (const auto& [number, row] : state_.versions.rows()) {
    if (row.is_listed() && !row.disk->damage.empty()) return text(*row.disk);
    if (shared.empty() && row.shared && !row.shared->good()) shared = text(*row.shared);
  }
  return shared;
}

// What is `lacking` lies on other nodes.
Error VersionChoice::not_here(const std::string& lacking) const {
  return {Code::not_found,
          fmt::format("{} of job {} can be brought back from this node alone; {}; start the job on "
                      "nodes that have the other parts or copies of them, or, where parity is "
                      "kept, on this one and any second one, which may be empty",
                      lacking, state_.name, trouble_)};
}

bool VersionChoice::is_known() const {
  const VersionRow* row = state_.versions.find(wanted_);
  return !trouble_.empty() || (row != nullptr && (row->is_listed() || row->shared));
}

Error VersionChoice::not_wanted() const {
  if (elsewhere_) return not_here(fmt::format("not all of version {}", wanted_));
  const bool hurt = is_known();
  return {hurt ? Code::corrupt : Code::not_found,
          fmt::format("version {} of job {} {}", wanted_, state_.name,
                      hurt ? "is damaged: " + damage()
                           : fmt::format("does not exist; `backstay ls {}` lists what there is",
                                         state_.name))};
}

Error VersionChoice::nothing() const {
  if (wanted_ != 0) return not_wanted();
  // It is unknown what is there: not the time to begin again.
  if (const auto& why = state_.versions.why_shared_unreadable()) {
    return {why->code(), why->message()};
  }
  const std::string why = damage();
  if (why.empty()) return {Code::none, "no version of this job exists yet"};
  if (elsewhere_) return not_here("no version");
  return {Code::corrupt, fmt::format("no version of job {} can be brought back; {}. Run 'backstay "
                                     "verify {}' for the whole list",
                                     state_.name, why, state_.name)};
}

}  // namespace backstay::agent
