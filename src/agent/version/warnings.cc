#include "agent/version/warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/version/blockers.h"
#include "agent/version/unprotected.h"
#include "agent/version/why_not.h"
#include "base/machine.h"

namespace backstay::agent {

namespace {

const char* advice(Code code) {
  return code == Code::no_space ? ": free space there, or set storage.dir" : "";
}

}  // namespace

std::vector<Warning> warnings(const JobState& state) {
  std::vector<Warning> all;
  if (const auto& failed = state.versions.last_not_written()) {
    all.push_back(
        {Warning::Kind::not_written,
         fmt::format("version {} could not be written: {}; each checkpoint tries again{}",
                     failed->version, failed->error.message(), advice(failed->error.code())),
         state.versions.write_outages()});
  }
  const Blocker* blocker = state.versions.newest(state.node);
  const VersionRow* blocked = blocker == nullptr ? nullptr : state.versions.find(blocker->version);
  if (blocked != nullptr && blocker->level == Level::local && blocked->in_doubt()) {
    all.push_back({Warning::Kind::not_recorded,
                   fmt::format("the commit record of version {} could not be written: {}; it is "
                               "tried again{}",
                               blocker->version, blocker->why, advice(blocker->code))});
  }
  if (blocker != nullptr && blocker->level > Level::local &&
      !is_overtaken(state, blocker->version, blocker->code)) {
    all.push_back({Warning::Kind::not_protected, line_of(*blocker)});
  }
  const bool none_shared = std::ranges::none_of(
      state.versions.rows(), [](const auto& entry) { return entry.second.shared.has_value(); });
  const auto& unreadable = state.versions.why_shared_unreadable();
  if (unreadable && none_shared) {  // else it has come meanwhile
    all.push_back({Warning::Kind::durable_unreadable,
                   fmt::format("the durable directory {} cannot be used: {}",
                               state.durable_settings.dir, unreadable->message())});
  } else if (const CopyFailed* failed = failed_copy(state)) {
    all.push_back(
        {Warning::Kind::not_copied,
         fmt::format("version {} could not be copied to {}: {}; the next one is tried",
                     failed->version, state.durable_settings.dir, failed->error.message())});
  }
  return all;
}

std::string UnreportedWarnings::take(const JobState& state) {
  if (std::exchange(run_, state.run) != state.run) told_.clear();
  std::map<Warning::Kind, std::uint64_t> told;
  std::string unreported;
  for (const Warning& trouble : warnings(state)) {
    const auto before = told_.find(trouble.kind);
    const bool known = before != told_.end() && before->second == trouble.number;
    if (!known && !unreported.empty()) continue;  // with the next checkpoint
    if (!known) unreported = trouble.text;
    told[trouble.kind] = trouble.number;
  }
  told_ = std::move(told);
  if (unreported.empty() || state.nodes == 1) return unreported;
  return fmt::format("node {} ({}): {}", state.node, host_name(), unreported);
}

}  // namespace backstay::agent
