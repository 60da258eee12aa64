#include "agent/job/commit_coordinator.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/disk/links.h"
#include "agent/version/why_not.h"
#include "base/check.h"
#include "base/log.h"

namespace backstay::agent {

// --- runs ---------------------------------------------------------------------------------------

Status CommitCoordinator::begin_run(const wire::Hello& hello) {
  MembershipFacts facts;
  facts.self = {hello.run, hello.node, state_.clock.wall_ns()};
  facts.members = hello.nodes;
  std::unique_ptr<net::Transport> transport;
  if (hello.nodes > 1) {
    BACKSTAY_ASSIGN(Network network, state_.store.make_network(facts.self, hello.secret));
    transport = std::move(network.transport);
    facts.heartbeat_s = network.heartbeat_s;
    facts.clock = network.clock;
    state_.lost_patience_ns =
        static_cast<std::uint64_t>(patience_in_losses * transport->facts().dead_after_s * 1e9);
  }
  BACKSTAY_ASSIGN(auto run_membership,
                  RunMembership::create(facts, std::move(transport), remembered(hello), *this));
  if (run_membership->descriptor() >= 0)
    BACKSTAY_TRY(state_.store.watch(run_membership->descriptor()));
  if (present_ && is_wanted(*present_)) {
    present_->retire();
    earlier_.push_back(std::move(present_));
  }
  present_ = std::move(run_membership);
  hurried_ns_ = 0;
  const bool protects = hello.nodes > 1 && (hello.replicas > 0 || !hello.parity.empty());
  state_.versions.begin_run(hello.run, hello.node, hello.nodes, protects);
  return {};
}

Status CommitCoordinator::know(const wire::Neighbours& neighbours) {
  return present_ ? present_->know(neighbours) : Status(Error(Code::state, "no run has begun"));
}

// Of the new run only this node's own parts count: others are here as copies.
std::vector<tree::Remembered> CommitCoordinator::remembered(const wire::Hello& hello) const {
  std::vector<tree::Remembered> all;
  for (const auto& [number, row] : state_.versions.rows()) {
    if (!row.disk) continue;
    const tree::RunVersion version{row.disk->record.run, number};
    if (row.disk->good()) {
      all.push_back({version, row.disk->level, row.disk->level});
    } else if (row.in_doubt()) {
      const auto& parts = row.disk->parts;
      const bool own = std::ranges::find(parts, hello.node) != parts.end();
      const Level held = row.is_of(hello.run) && own ? Level::local : Level::none;
      all.push_back({version, held, Level::none});
    }
  }
  return all;
}

bool CommitCoordinator::in_doubt() const {
  return present_ && has_in_doubt_of(present_->facts().self.run);
}

bool CommitCoordinator::has_in_doubt_of(RunId run) const {
  return std::ranges::any_of(state_.versions.rows(), [run](const auto& entry) {
    return entry.second.in_doubt() && entry.second.is_of(run);
  });
}

bool CommitCoordinator::settled() const {
  for (const auto& [number, version] : state_.memory) {
    if (version.info.nodes > 1 && version.captured && !state_.is_safe(version) && !version.failed)
      return false;
  }
  return !in_doubt() || out_of_patience();
}

bool CommitCoordinator::out_of_patience() const {
  return hurried_ns_ != 0 && state_.clock.monotonic_ns() >= patience_ends_ns();
}

std::uint64_t CommitCoordinator::patience_ends_ns() const {
  return std::max(hurried_ns_, sealed_ns_) + static_cast<std::uint64_t>(patience_s * 1e9);
}

bool CommitCoordinator::may_be_decided() const {
  if (!in_doubt() || !present_->lost().empty()) return false;
  return std::ranges::any_of(state_.versions.rows(), [this](const auto& entry) {
    const VersionRow& row = entry.second;
    return row.in_doubt() && row.is_of(state_.run) && !row.durable() &&
           why_not(state_, entry.first, Level::local).empty();
  });
}

std::uint64_t CommitCoordinator::settles_at_ns() const {
  return hurried_ns_ == 0 || out_of_patience() ? 0 : patience_ends_ns();
}

void CommitCoordinator::hurry() {
  if (hurried_ns_ == 0) hurried_ns_ = state_.clock.monotonic_ns();
}

void CommitCoordinator::progress() {
  for (RunMembership* run_membership : run_memberships()) run_membership->progress();
  drop_unwanted();
}

void CommitCoordinator::drop_unwanted() {
  std::erase_if(earlier_,
                [this](const auto& run_membership) { return !is_wanted(*run_membership); });
}

bool CommitCoordinator::has_news() const {
  const auto all = run_memberships();
  return std::any_of(all.begin(), all.end(), [](const RunMembership* run_membership) {
    return run_membership->has_news();
  });
}

std::vector<RunMembership*> CommitCoordinator::run_memberships() const {
  std::vector<RunMembership*> all;
  if (present_) all.push_back(present_.get());
  for (const auto& run_membership : earlier_) all.push_back(run_membership.get());
  return all;
}

// Versions of its run may still be announced to it.
bool CommitCoordinator::is_wanted(const RunMembership& run_membership) const {
  const RunId run = run_membership.facts().self.run;
  return has_in_doubt_of(run) || awaits_protected(run) ||
         std::any_of(state_.memory.begin(), state_.memory.end(), [this, run](const auto& entry) {
           const MemoryVersion& version = entry.second;
           return version.info.run == run && version.captured && !state_.is_local(version) &&
                  !version.failed;
         });
}

// Another host has a copy of a version of one node, and that is not announced yet.
bool CommitCoordinator::awaits_protected(RunId run) const {
  return std::ranges::any_of(state_.versions.rows(), [run](const auto& entry) {
    const VersionRow& row = entry.second;
    return row.protected_here && row.is_of(run) && row.disk->record.nodes == 1;
  });
}

RunMembership* CommitCoordinator::membership_of(const format::CommitRecord& record) {
  for (RunMembership* run_membership : run_memberships()) {
    if (run_membership->facts().self.run == record.run) return run_membership;
  }
  if (record.nodes > 1) return nullptr;
  auto one = RunMembership::create({{record.run, 0, state_.clock.wall_ns()}}, nullptr, {}, *this);
  BACKSTAY_CHECK(one.ok());
  return earlier_.emplace_back(std::move(*one)).get();
}

// --- what the store has done --------------------------------------------------------------------

void CommitCoordinator::on(const VersionSealed& event) {
  const VersionNumber number = event.stored.version;
  sealed_ns_ = state_.clock.monotonic_ns();
  state_.versions.prepared(event.stored, event.manifest->node);
  state_.newest_part = event.manifest;
  if (MemoryVersion* version = state_.in_memory(number)) {
    version->sealed(state_.pool, *event.manifest, event.header);
    record_written(*version);
  }
  if (RunMembership* run_membership = membership_of(event.stored.record))
    run_membership->held(number, Level::local);
}

// Level local waits for the slowest node: this says which one it is.
void CommitCoordinator::record_written(const MemoryVersion& version) const {
  const std::uint64_t now = state_.clock.wall_ns();
  const std::uint64_t passed_ns = now - std::min(now, version.captured_ns);
  state_.record("written", {{"version", version.info.version},
                            {"bytes", version.bytes() - version.bytes_in_older()},
                            {"seconds", 1e-9 * static_cast<double>(passed_ns)},
                            {"write_seconds", version.write_seconds(now)}});
}

void CommitCoordinator::on(const VersionRecorded& event) {
  const tree::RunVersion version{event.stored.record.run, event.stored.version};
  state_.versions.recorded(event.stored);
  for (RunMembership* run_membership : run_memberships())
    run_membership->recorded(version, event.stored.level);
  drop_unwanted();
}

void CommitCoordinator::on(const RecordFailed& event) {
  if (event.error.code() == Code::not_found) return;  // the version has expired meanwhile
  spdlog::error("the record of a version cannot be written job={} version={} level={} error=\"{}\"",
                state_.name, event.version, level_name(event.level), event.error.to_string());
  state_.versions.record_failed(event.version, event.level, event.error);
}

void CommitCoordinator::held_protected(VersionNumber version) {
  const VersionRow* row = state_.versions.find(version);
  const bool alone = row != nullptr && row->disk && row->disk->record.nodes == 1;
  RunMembership* run_membership = alone ? membership_of(row->disk->record) : present_.get();
  if (run_membership == nullptr) return;
  state_.versions.replicated(version);
  run_membership->held(version, Level::protected_);
}

// --- what the fleets say ------------------------------------------------------------------------

bool CommitCoordinator::has_part_of(tree::RunVersion version) const {
  const VersionRow* row = state_.versions.find(version.version);
  return row != nullptr && row->is_of(version.run);
}

// Who has nothing of it has nothing to record, and no say in it: it is a version of an earlier run
// on other nodes.
void CommitCoordinator::record(tree::RunVersion version, Level level) {
  if (has_part_of(version)) return order_record(version.version, level);
  constexpr std::size_t most = 64;  // more than the tree keeps
  std::set<VersionOfRun>& decided = state_.elsewhere.decided;
  decided.emplace(version.version, version.run);
  if (decided.size() > most) decided.erase(decided.begin());
  state_.versions.changed(version.version);
}

void CommitCoordinator::order_record(VersionNumber version, Level level) {
  const VersionRow* row = state_.versions.find(version);
  BACKSTAY_CHECK(row != nullptr && row->disk);
  format::CommitRecord record = row->disk->record;
  record.level = level;
  // In earlier runs this node may have had another number.
  const bool is_of_this_run = state_.nodes > 1 && row->is_of(state_.run);
  const auto part = is_of_this_run ? std::optional(state_.node) : std::nullopt;
  state_.versions.ordered(version, StoreOrder::record);
  state_.store.post(RecordVersion{std::move(record), part});
}

void CommitCoordinator::announced(tree::RunVersion version, Level level) {
  state_.versions.announced({version.version, version.run}, level);
}

void CommitCoordinator::membership(const tree::Membership& change) {
  for (const auto& [nodes, what] :
       {std::pair(&change.lost, "nodes_lost"), std::pair(&change.back, "nodes_back")}) {
    if (nodes->empty()) continue;
    nlohmann::json list = nlohmann::json::array();
    for (const tree::Range& range : nodes->ranges(wire::list_entries_max)) {
      for (std::uint32_t at = 0; at < range.count; ++at) list.push_back(range.first + at);
    }
    spdlog::warn("{} job={} nodes={}", what, state_.name, list.dump());
    state_.record(what, {{"nodes", std::move(list)}});
  }
  events_.membership(change);
}

void CommitCoordinator::released(std::uint64_t barrier, std::uint64_t round) {
  events_.released(barrier, round);
}

void CommitCoordinator::ticked() {
  for (const auto& [version, level] : state_.versions.take_retries()) order_record(version, level);
  say_again();
  events_.ticked();
}

// The tree keeps what was said of some dozens of versions only (tree/floors.h). Where one node
// takes its time, and newer versions come meanwhile, it has forgotten what the others have said of
// the one that they wait for.
void CommitCoordinator::say_again() {
  struct Said {
    tree::RunVersion version;
    Level held = Level::none;
    Level recorded = Level::none;
  };
  std::vector<Said> all;
  const auto newest = [&](auto is_one, Level held, bool recorded) {
    const auto& rows = state_.versions.rows();
    std::size_t left = said_again_max;
    for (auto at = rows.rbegin(); at != rows.rend() && left > 0; ++at) {
      const auto& [number, row] = *at;
      if (!is_one(row)) continue;
      const tree::RunVersion version{row.disk->record.run, number};
      all.push_back({version, held, recorded ? row.disk->level : Level::none});
      --left;
    }
  };
  newest([](const VersionRow& row) { return row.in_doubt(); }, Level::local, false);
  newest([](const VersionRow& row) { return row.protected_here; }, Level::protected_, false);
  newest([](const VersionRow& row) { return row.awaits_announcement(); }, Level::none, true);
  for (const Said& said : all) {  // by now, any of them may be announced
    for (RunMembership* run_membership : run_memberships()) {
      if (said.recorded != Level::none) run_membership->recorded(said.version, said.recorded);
      if (said.held == Level::none || run_membership->facts().self.run != said.version.run)
        continue;
      run_membership->held(said.version.version, said.held);
    }
  }
}

}  // namespace backstay::agent
