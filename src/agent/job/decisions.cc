#include "agent/job/decisions.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/disk/links.h"
#include "base/log.h"

namespace backstay::agent {

// --- runs ------------------------------------------------------------------------------------------

Status Decisions::begin_run(const wire::Hello& hello) {
  forget_mere_copies(hello);
  count_recorded();
  FleetFacts facts;
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
  BACKSTAY_ASSIGN(auto fleet,
                  Fleet::create(facts, std::move(transport), remembered(hello.run), *this));
  if (fleet->descriptor() >= 0) BACKSTAY_TRY(state_.store.watch(fleet->descriptor()));
  if (present_ && is_wanted(*present_)) {
    present_->retire();
    earlier_.push_back(std::move(present_));
  }
  present_ = std::move(fleet);
  protected_here_.clear();
  hurried_ns_ = 0;
  tell_protected_anew(hello);
  return {};
}

// This agent's earlier life has not written this node's part of it: what is here was kept for others.
void Decisions::forget_mere_copies(const wire::Hello& hello) {
  std::erase_if(state_.undecided, [&](const auto& entry) {
    const StoredVersion& stored = entry.second;
    return stored.record.run == hello.run &&
           std::ranges::find(stored.parts, hello.node) == stored.parts.end();
  });
}

// A record proves that every node had its part on its disk, so a restart of the next run may take the version, although
// the nodes that would have announced it to this one may be gone.
void Decisions::count_recorded() {
  for (const auto& [number, recorded] : recorded_) {
    if (state_.disk.contains(number)) continue;
    StoredVersion& stored = state_.disk[number] = recorded;
    stored.level = std::min(stored.level, Level::local);
  }
}

// A protected record proves that every node held its part, not that every node recorded it.
// Such a version is reported as local until the tree announces it again.
void Decisions::tell_protected_anew(const wire::Hello& hello) {
  if (hello.nodes == 1) return;
  for (auto& [number, stored] : state_.disk) {
    const bool is_of_this_run = stored.record.run == hello.run;
    if (!is_of_this_run || !stored.good() || stored.level != Level::protected_) continue;
    recorded_[number] = stored;
    stored.level = Level::local;
  }
}

Status Decisions::know(const wire::Neighbours& neighbours) {
  return present_ ? present_->know(neighbours) : Status(Error(Code::state, "no run has begun"));
}

std::vector<tree::Remembered> Decisions::remembered(RunId run) const {
  std::vector<tree::Remembered> all;
  for (const auto& [number, stored] : state_.disk) {
    if (!stored.good()) continue;
    all.push_back({{stored.record.run, number}, stored.level, stored.level});
  }
  for (const auto& [number, stored] : state_.undecided) {
    const Level held = stored.record.run == run ? Level::local : Level::none;
    all.push_back({{stored.record.run, number}, held, Level::none});
  }
  return all;
}

bool Decisions::undecided() const {
  return present_ && has_undecided_of(present_->facts().self.run);
}

bool Decisions::has_undecided_of(RunId run) const {
  return std::any_of(state_.undecided.begin(), state_.undecided.end(),
                     [run](const auto& entry) { return entry.second.record.run == run; });
}

bool Decisions::settled() const {
  for (const auto& [number, version] : state_.memory) {
    if (version.info.nodes > 1 && version.captured && !version.safe() && !version.failed)
      return false;
  }
  return !undecided() || out_of_patience();
}

bool Decisions::out_of_patience() const {
  return hurried_ns_ != 0 && state_.clock.monotonic_ns() >= patience_ends_ns();
}

std::uint64_t Decisions::patience_ends_ns() const {
  return std::max(hurried_ns_, sealed_ns_) + static_cast<std::uint64_t>(patience_s * 1e9);
}

bool Decisions::may_be_decided() const {
  if (!undecided() || !present_->lost().empty()) return false;
  return std::any_of(state_.undecided.begin(), state_.undecided.end(), [this](const auto& entry) {
    return entry.second.record.run == state_.run &&
           !state_.lacks.of(entry.first, Level::captured, Level::local);
  });
}

std::uint64_t Decisions::settles_at_ns() const {
  return hurried_ns_ == 0 || out_of_patience() ? 0 : patience_ends_ns();
}

void Decisions::hurry() {
  if (hurried_ns_ == 0) hurried_ns_ = state_.clock.monotonic_ns();
}

void Decisions::progress() {
  for (Fleet* fleet : fleets()) fleet->progress();
  drop_unwanted();
}

void Decisions::drop_unwanted() {
  std::erase_if(earlier_, [this](const auto& fleet) { return !is_wanted(*fleet); });
}

bool Decisions::has_news() const {
  const auto all = fleets();
  return std::any_of(all.begin(), all.end(), [](const Fleet* fleet) { return fleet->has_news(); });
}

std::vector<Fleet*> Decisions::fleets() const {
  std::vector<Fleet*> all;
  if (present_) all.push_back(present_.get());
  for (const auto& fleet : earlier_) all.push_back(fleet.get());
  return all;
}

// Versions of its run may still be told to it.
bool Decisions::is_wanted(const Fleet& fleet) const {
  const RunId run = fleet.facts().self.run;
  return has_undecided_of(run) ||
         std::any_of(state_.memory.begin(), state_.memory.end(), [run](const auto& entry) {
           const MemoryVersion& version = entry.second;
           return version.info.run == run && version.captured && !version.local && !version.failed;
         });
}

Fleet* Decisions::fleet_of(const format::CommitRecord& record) {
  for (Fleet* fleet : fleets()) {
    if (fleet->facts().self.run == record.run) return fleet;
  }
  if (record.nodes > 1) return nullptr;
  auto one = Fleet::create({{record.run, 0, state_.clock.wall_ns()}}, nullptr, {}, *this);
  BACKSTAY_CHECK(one.ok());
  return earlier_.emplace_back(std::move(*one)).get();
}

// --- what the store has done -----------------------------------------------------------------------

void Decisions::on(const VersionSealed& event) {
  const VersionNumber number = event.stored.version;
  sealed_ns_ = state_.clock.monotonic_ns();
  if (MemoryVersion* version = state_.in_memory(number)) {
    version->sealed = true;
    record_written(*version);
  }
  if (event.stored.undecided) {
    state_.undecided[number] = event.stored;
    state_.undecided[number].parts = {event.node};
  }
  if (Fleet* fleet = fleet_of(event.stored.record)) fleet->held(number, Level::local);
}

// Level local waits for the slowest node: this says which one it is.
void Decisions::record_written(const MemoryVersion& version) const {
  const std::uint64_t now = state_.clock.wall_ns();
  const std::uint64_t passed_ns = now - std::min(now, version.captured_ns);
  state_.record("written", {{"version", version.info.version},
                            {"bytes", version.bytes()},
                            {"seconds", 1e-9 * static_cast<double>(passed_ns)},
                            {"write_seconds", version.write_seconds(now)}});
}

void Decisions::on(const VersionRecorded& event) {
  const tree::RunVersion version{event.stored.record.run, event.stored.version};
  state_.undecided.erase(event.stored.version);
  unrecorded_.erase(event.stored.version);
  recorded_[event.stored.version] = event.stored;
  for (Fleet* fleet : fleets()) fleet->recorded(version, event.stored.level);
  drop_unwanted();
}

void Decisions::on(const RecordFailed& event) {
  if (event.error.code() == Code::not_found) return;  // the version has expired meanwhile
  spdlog::error("the record of a version cannot be written job={} version={} level={} error=\"{}\"",
                state_.name, event.version, level_name(event.level), event.error.to_string());
  again_[event.version] = event.level;
  unrecorded_[event.version] = {event.version, event.level, event.error.code(),
                                event.error.message()};
}

std::vector<Lack> Decisions::unrecorded() const {
  std::vector<Lack> all;
  for (const auto& [number, lack] : unrecorded_) {
    if (has_part_of({state_.run, number})) all.push_back(lack);
  }
  return all;
}

void Decisions::removed(VersionNumber version) {
  protected_here_.erase(version);
  recorded_.erase(version);
  again_.erase(version);
  unrecorded_.erase(version);
}

void Decisions::held_protected(VersionNumber version) {
  if (!present_) return;
  protected_here_.insert(version);
  present_->held(version, Level::protected_);
}

// --- what the fleets say ---------------------------------------------------------------------------

bool Decisions::has_part_of(tree::RunVersion version) const {
  const auto memory = state_.memory.find(version.version);  // of one node: it is not undecided
  if (memory != state_.memory.end() && memory->second.sealed) {
    return memory->second.info.run == version.run;
  }
  const auto in = [version](const std::map<VersionNumber, StoredVersion>& versions) {
    const auto found = versions.find(version.version);
    return found != versions.end() && found->second.record.run == version.run;
  };
  return in(state_.disk) || in(state_.undecided) || in(recorded_);
}

// Who has nothing of it has nothing to record, and no say in it: it is a version of an earlier run on other nodes.
void Decisions::record(tree::RunVersion version, Level level) {
  if (has_part_of(version)) order_record(version.version, level);
}

void Decisions::order_record(VersionNumber version, Level level) {
  // In earlier runs this node may have had another number.
  const bool is_of_this_run = state_.nodes > 1 && has_part_of({state_.run, version});
  const auto part = is_of_this_run ? std::optional(state_.node) : std::nullopt;
  state_.store.post(RecordVersion{version, level, part});
}

void Decisions::announced(tree::RunVersion version, Level level) {
  const auto found = recorded_.find(version.version);
  if (found == recorded_.end() || found->second.record.run != version.run) return;
  StoredVersion stored = found->second;
  if (level >= stored.level) recorded_.erase(found);
  tell(std::move(stored), level);
}

void Decisions::tell(StoredVersion stored, Level level) {
  if (level >= Level::protected_) protected_here_.erase(stored.version);
  const auto known = state_.disk.find(stored.version);
  if (known != state_.disk.end() && known->second.level >= level) return;
  stored.level = level;
  listener_.told(stored);
}

void Decisions::membership(const tree::Membership& change) {
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
  listener_.membership(change);
}

void Decisions::released(std::uint64_t barrier, std::uint64_t round) {
  listener_.released(barrier, round);
}

void Decisions::ticked() {
  for (const auto& [version, level] : std::exchange(again_, {})) order_record(version, level);
  say_again();
  listener_.ticked();
}

// The tree keeps what was said of some dozens of versions only (tree/floors.h). Where one node takes its time, and newer
// versions come meanwhile, it has forgotten what the others have said of the one that they wait for.
void Decisions::say_again() {
  struct Said {
    tree::RunVersion version;
    Level held = Level::none;
    Level recorded = Level::none;
  };
  std::vector<Said> all;
  const auto newest = [&](const auto& versions, auto said) {
    std::size_t left = said_again_max;
    for (auto at = versions.rbegin(); at != versions.rend() && left > 0; ++at, --left) {
      all.push_back(said(*at));
    }
  };
  newest(state_.undecided, [](const auto& entry) {
    return Said{{entry.second.record.run, entry.first}, Level::local};
  });
  newest(protected_here_, [this](VersionNumber version) {
    return Said{{present_->facts().self.run, version}, Level::protected_};
  });
  newest(recorded_, [](const auto& entry) {
    return Said{{entry.second.record.run, entry.first}, Level::none, entry.second.level};
  });
  for (const Said& said : all) {  // by now, any of them may be told
    for (Fleet* fleet : fleets()) {
      if (said.recorded != Level::none) fleet->recorded(said.version, said.recorded);
      if (said.held == Level::none || fleet->facts().self.run != said.version.run) continue;
      fleet->held(said.version.version, said.held);
    }
  }
}

}  // namespace backstay::agent
