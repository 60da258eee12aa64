// The checkpoints of a simulated run: whole versions, and such as keep chunks of the one before.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "simulated_run/run.h"

namespace backstay::simulated {

namespace {

constexpr std::size_t kept_max = 4;  // chunks of a rank, so that its object fits into the pool

}  // namespace

// The version of a restart, where all agents say that it may be a base; else number 0.
VersionOfRun SimulatedRun::offered(VersionOfRun version) const {
  const auto says_so = [](const auto& one) { return one->plan().may_be_base; };
  return std::ranges::all_of(ranks_, says_so) ? version : VersionOfRun();
}

// What companions agree on (client/object_session.cc).
VersionOfRun SimulatedRun::find_base() {
  constexpr unsigned chain_max = 5;
  const bool full_is_due = chain_ + 1 >= chain_max || random_.between(0, 2) == 0;
  const VersionOfRun base = full_is_due ? VersionOfRun() : std::exchange(captured_, {});
  if (base.first != 0) rest(random_.between(0, 5'000));  // it may become local meanwhile
  const auto tells_local = [&](HostId id) {
    const auto& agent = hosts_.at(id).agent;
    return agent && agent->job().level_of(base.first).level >= Level::local;
  };
  const bool found = base.first != 0 && std::ranges::all_of(nodes_, tells_local);
  chain_ = found ? chain_ + 1 : 0;
  return found ? base : VersionOfRun();
}

// Some ranks keep nothing of a base, nor do some nodes.
Promises::Kept SimulatedRun::choose_kept(VersionOfRun base) {
  Promises::Kept kept{base, {}};
  for (const auto& one : ranks_) {
    auto& chunks = kept.chunks.emplace_back();
    if (base.first == 0 || random_.between(0, 2) == 0) continue;
    const std::size_t whole = promises_.expected(kept.base, one->number()).size() / buffer_bytes;
    for (std::size_t chunk = 0; chunk < std::min<std::size_t>(whole, kept_max); ++chunk) {
      if (random_.coin()) chunks.push_back(chunk);
    }
  }
  return kept;
}

bool SimulatedRun::checkpoint() {
  const VersionOfRun base = find_base();
  if (base.first != 0) rest(random_.between(0, 20));  // until the ranks have agreed
  if (agent_died_ || !broken_.empty()) return false;
  const VersionOfRun version{next_version_++, run_};
  std::vector<std::size_t> bytes;
  for (std::size_t number = 0; number < ranks_.size(); ++number)
    bytes.push_back(random_.between(1, 5 * buffer_bytes));
  const Promises::Kept kept = choose_kept(base);
  promises_.taking(version, bytes, std::exchange(latest_, version), kept);
  counts_.on_base += base.first != 0 ? 1 : 0;
  const bool of_another_run = base.first != 0 && base.second != run_ && nodes_.size() > 1;
  counts_.on_restarted += of_another_run ? 1 : 0;
  counts_.on_restarted_parity += of_another_run && !parity_groups().empty() ? 1 : 0;
  for (const auto& one : ranks_) {
    one->save(version.first, promises_.expected(version, one->number()), base.first,
              kept.chunks.at(one->number()));
  }
  const bool answered = run_until("captured", [&] {
    return std::all_of(ranks_.begin(), ranks_.end(),
                       [](const auto& one) { return one->captured().has_value(); });
  });
  if (!answered) return false;
  ++counts_.versions;
  captured_ = version;
  std::string text = fmt::format("version {} captured", version.first);
  if (base.first != 0) text += fmt::format(", which keeps chunks of version {}", base.first);
  for (const auto& one : ranks_) {
    if (one->captured()->code == Code::ok) continue;
    text = one->captured()->message;
    captured_ = {};
  }
  say(text);
  if (base.first != 0 && captured_.first != 0) check_base(base);
  return true;
}

// Each node keeps its part of a base, though perhaps only another node's part needs that.
void SimulatedRun::check_base(VersionOfRun base) {
  if (nodes_.size() == 1) return;
  for (const HostId id : nodes_) {
    const agent::VersionTable& table = hosts_.at(id).agent->job().state().versions;
    if (table.needed_by(base) >= captured_.first) continue;
    fail(fmt::format("host {} may remove version {}, of which version {} keeps chunks", id,
                     base.first, captured_.first));
  }
}

}  // namespace backstay::simulated
