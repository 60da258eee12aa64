#include "agent/redundancy/replicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/disk/links.h"
#include "agent/version/unprotected.h"
#include "base/log.h"
#include "format/names.h"
#include "format/segment.h"
#include "protect/keepers.h"
#include "protect/placement.h"
#include "store/needed_files.h"

namespace backstay::agent {

namespace {

constexpr std::size_t asked_max = 2;      // files that copies are asked for at once
constexpr std::size_t refusals_max = 16;  // nodes that may refuse one file, one after the other
constexpr std::size_t corrupt_max = 2;    // that say that it is damaged: then it is
constexpr std::uint64_t rest_ns = 30'000'000'000;  // before it is tried again

FileOf file_of(const wire::peer::Kept& kept) { return {kept.version, kept.run, kept.node}; }
FileOf file_of(const wire::peer::Keep& keep) { return {keep.version, keep.run, keep.node}; }

wire::peer::Keep what_of(const HeldFile& held) {
  wire::peer::Keep what;
  what.version = held.file.version;
  what.run = held.file.run;
  what.node = held.file.node;
  what.segment_bytes = held.segment_bytes;
  what.nodes = held.nodes;
  what.ranks = held.ranks_of_run;
  for (const format::Need& need : store::needs_of(held.needs)) {
    what.needs.push_back({need.version, need.run});
  }
  return what;
}

void add_record(wire::peer::Keep& what, const format::CommitRecord& record) {
  what.recorded = record.level;
  what.payload_bytes = record.payload_bytes;
  what.manifests_sum = record.manifests_sum;
  what.captured_ns = record.captured_ns;
  what.committed_ns = record.committed_ns;
}

std::string_view wrong_with(const std::vector<wire::peer::Need>& needs, VersionNumber of) {
  std::vector<format::Need> all;
  for (const wire::peer::Need& need : needs) all.push_back({need.version, need.run});
  return format::wrong_with_needs(all, of);
}

Status check(const wire::peer::Keep& keep) {
  const bool level_fits = keep.recorded == Level::none || keep.recorded == Level::local ||
                          keep.recorded == Level::protected_;
  if (keep.version == 0 || keep.version > format::version_max || keep.node >= keep.nodes ||
      keep.ranks == 0 || keep.segment_bytes < format::segment_header_bytes ||
      keep.segment_bytes % format::segment_alignment != 0 || !level_fits ||
      !wrong_with(keep.needs, keep.version).empty()) {
    return Error(Code::invalid, "what is to be kept makes no sense");
  }
  return {};
}

}  // namespace

Status check_replicas(std::uint32_t replicas, std::uint32_t nodes) {
  if (nodes <= 1 || replicas < nodes) return {};
  return Error(
      Code::few_nodes,
      fmt::format("protect.replicas is {} and the job has {} nodes: each copy needs a node "
                  "of its own, so set it to {} or less, or run on more nodes",
                  replicas, nodes, nodes - 1));
}

Replicator::Replicator(ReplicatorWorld world, const HeldFiles& files, ReplicatorSettings settings,
                       FileEvents& events)
    : world_(world),
      held_(files),
      settings_([&] {
        if (settings.domains.size() != world.peers.members())
          settings.domains.assign(world.peers.members(), "");
        return std::move(settings);
      }()),
      events_(events),
      self_(world.peers.self()),
      replica_receiver_(
          world, settings_.bytes_per_s,
          [this](const wire::peer::Keep& what, const HeldFile& held) { have(what, held); }) {
  tell_relaxation();
}

void Replicator::tell_relaxation() const {
  const auto placed =
      protect::place_replicas({world_.state.run, settings_.replicas, settings_.domains});
  if (!placed.ok()) return;
  const std::string text = protect::relaxation(*placed, settings_.domains).text();
  if (text.empty()) return;
  spdlog::warn("domains job={}: {}", world_.state.name, text);
  world_.state.record("domains_relaxed", {{"why", text}});
  world_.state.notes.push_back(text);
}

// --- what is to be looked after ------------------------------------------------------------------

// An agent that has just begun does not know the other holders. For its own files it asks again,
// and holders confirm at once; replicas are left to their owner while that one is alive.
void Replicator::listed(std::span<const HeldFile> files) {
  for (const HeldFile& held : files) {
    const FileOf& file = held.file;
    if (file.run != world_.state.run || file.parity) continue;
    if (held.record && held.record->level >= Level::protected_) protected_.insert(file.version);
    if (!duties_.contains(file)) {
      sealed(held);
      const auto duty = duties_.find(file);
      if (duty == duties_.end()) return;  // nothing is kept elsewhere
      duty->second.complete = !is_own(file);
      if (!is_own(file) && !lost_.contains(file.node)) duty->second.holders.insert(file.node);
    }
    if (held.record) recorded(*held.record);
  }
}

void Replicator::sealed(const HeldFile& file) {
  if (world_.peers.members() == 1 || settings_.replicas == 0) return;
  duties_[file.file].what = what_of(file);
}

void Replicator::recorded(const format::CommitRecord& record) {
  for (auto& [file, duty] : duties_) {
    if (file.version != record.version || file.run != record.run) continue;
    add_record(duty.what, record);
  }
}

void Replicator::protected_everywhere(VersionNumber version) {
  protected_.insert(version);
  for (Entry& entry : duties_) begin_again(entry);
}

void Replicator::removed(VersionNumber version) {
  protected_.erase(version);
  std::erase_if(duties_, [version](const Entry& entry) { return entry.first.version == version; });
  replica_receiver_.removed(version);
}

void Replicator::have(const wire::peer::Keep& keep, const HeldFile& held) {
  events_.kept(held);
  const FileOf file = file_of(keep);
  if (file.run != world_.state.run || is_own(file)) return;
  Duty& duty = duties_[file];
  duty.what = keep;
  duty.complete = true;
  duty.holders.clear();
  for (const NodeId node : keep.holders) {
    if (node != self_ && node < world_.peers.members() && !lost_.contains(node))
      duty.holders.insert(node);
  }
}

void Replicator::inherited(const HeldFile& held, std::set<NodeId> others) {
  others.erase(self_);
  for (const NodeId node : lost_) others.erase(node);
  Entry& entry = *duties_.try_emplace(held.file).first;
  Duty& duty = entry.second;
  duty.what = what_of(held);
  duty.holders = std::move(others);
  duty.complete = true;
  duty.inherited = true;
  if (held.record) recorded(*held.record);
  begin_again(entry);
}

void Replicator::repair(const HeldFile& damaged, NodeId source) {
  const FileOf& file = damaged.file;
  wire::peer::Keep what;
  if (const auto duty = duties_.find(file); duty != duties_.end()) {
    what = duty->second.what;
    what.holders.assign(duty->second.holders.begin(), duty->second.holders.end());
  } else {
    what = what_of(damaged);
  }
  replica_receiver_.keep(source, what, /*replace=*/true);
}

bool Replicator::is_own(const FileOf& file) const {
  return file.node == self_ && file.run == world_.state.run;
}

bool Replicator::is_ours(const Entry& entry) const {
  const auto& [file, duty] = entry;
  if (is_own(file)) return true;
  if (duty.inherited) return duty.holders.empty() || self_ < *duty.holders.begin();
  if (!protected_.contains(file.version) || duty.holders.contains(file.node)) return false;
  return duty.holders.empty() || self_ < *duty.holders.begin();
}

bool Replicator::is_wanted(const Entry& entry) const {
  return entry.second.holders.size() < settings_.replicas;
}

// --- asking --------------------------------------------------------------------------------------

std::uint64_t Replicator::pump() {
  std::uint64_t next = replica_receiver_.pump();
  const std::uint64_t now = world_.state.clock.monotonic_ns();
  std::size_t active = 0;
  for (Entry& entry : duties_) {
    const Duty& duty = entry.second;
    if (!is_wanted(entry) || !is_ours(entry)) {
      if (duty.asked.empty()) entry.second.pin.release();
      continue;
    }
    if (duty.asked.empty() && now < duty.not_before_ns) {
      next = std::min(next, duty.not_before_ns);
      continue;
    }
    if (active++ == asked_max) break;
    ask(entry);
    if (duty.asked.empty()) next = std::min(next, duty.not_before_ns);
  }
  return next;
}

void Replicator::ask(Entry& entry) {
  Duty& duty = entry.second;
  const std::size_t wanted = settings_.replicas - duty.holders.size();
  if (!duty.exhausted && duty.asked.size() < wanted) {
    std::vector<NodeId> to;
    for (const NodeId node : candidates(entry)) {
      if (duty.asked.size() == wanted) break;
      if (node == self_ || duty.holders.contains(node) || duty.refused.contains(node)) continue;
      if (duty.asked.insert(node).second) to.push_back(node);
    }
    duty.exhausted = duty.asked.size() < wanted;
    if (!to.empty() && !duty.pin) {
      duty.pin = VersionPin(world_.state.versions, entry.first.version, PinReason::replicating);
    }
    for (const NodeId node : to) {
      send_needed(entry.first, node);
      send_keep(entry, node);
    }
  }
  if (duty.asked.empty()) give_up(entry);
}

// Of a file that an earlier run left, those who would keep ours.
std::vector<NodeId> Replicator::candidates(const Entry& entry) const {
  const auto& [file, duty] = entry;
  std::vector<bool> alive(world_.peers.members(), true);
  for (const NodeId node : lost_) alive[node] = false;
  const protect::PlacementFacts facts{file.run ^ file.version, settings_.replicas,
                                      settings_.domains};
  auto order = protect::keepers_in_order(facts, alive, duty.inherited ? self_ : file.node);
  return order.ok() ? std::move(*order) : std::vector<NodeId>();
}

// A record here does not prove one elsewhere. Until the announcement, replicas carry level local,
// so that a node that removed its own part does not count the version as protected. For versions of
// an earlier run the record is all that is known.
bool Replicator::is_announced(const FileOf& file) const {
  if (file.run != world_.state.run) return true;
  const VersionRow* row = world_.state.versions.find(file.version);
  return row != nullptr && row->announced >= Level::protected_;
}

void Replicator::send_keep(Entry& entry, NodeId to) {
  Duty& duty = entry.second;
  std::set<NodeId> holders = duty.holders;
  holders.insert(duty.asked.begin(), duty.asked.end());
  holders.insert(self_);
  wire::peer::Keep keep = duty.what;
  keep.holders.assign(holders.begin(), holders.end());
  if (!is_announced(entry.first)) keep.recorded = std::min(keep.recorded, Level::local);
  duty.told[to] = std::move(holders);
  world_.peers.send(to, std::move(keep));
}

// What a copy of the file needs, before it; where it is not here, the keeper says so.
void Replicator::send_needed(const FileOf& file, NodeId to) {
  const HeldFile* newer = held_.find(file);
  if (newer == nullptr) return;
  for (const FileOf& needed : newer->needs) {
    const HeldFile* held = held_.find(needed);
    if (held == nullptr) continue;
    wire::peer::Keep keep = what_of(*held);
    if (held->record) add_record(keep, *held->record);
    if (!is_announced(needed)) keep.recorded = std::min(keep.recorded, Level::local);
    const std::set<NodeId> holders = holders_of(needed, to);
    keep.holders.assign(holders.begin(), holders.end());
    world_.peers.send(to, std::move(keep));
  }
}

std::set<NodeId> Replicator::holders_of(const FileOf& file, NodeId to) const {
  std::set<NodeId> holders = {self_, to};
  if (const auto duty = duties_.find(file); duty != duties_.end()) {
    holders.insert(duty->second.holders.begin(), duty->second.holders.end());
  }
  return holders;
}

void Replicator::on(NodeId from, const wire::peer::Kept& kept) {
  const auto entry = duties_.find(file_of(kept));
  if (entry == duties_.end() || entry->second.asked.erase(from) == 0) return;
  if (kept.code != Code::ok) return refused(*entry, from, Error(kept.code, kept.message));
  entry->second.holders.insert(from);
  if (!is_wanted(*entry)) complete(*entry);
}

void Replicator::refused(Entry& entry, NodeId keeper, const Error& error) {
  auto& [file, duty] = entry;
  spdlog::warn(
      "a copy is not kept by node {} job={} version={} node={} error=\"{}\"; another is asked",
      keeper, world_.state.name, file.version, file.node, error.to_string());
  duty.refused.insert_or_assign(keeper, error);
  const auto corrupt = std::ranges::count_if(
      duty.refused, [](const auto& one) { return one.second.code() == Code::corrupt; });
  // not_found: it is our file that is not there any more.
  duty.exhausted = duty.refused.size() >= refusals_max ||
                   static_cast<std::size_t>(corrupt) >= corrupt_max ||
                   error.code() == Code::not_found;
}

void Replicator::complete(Entry& entry) {
  auto& [file, duty] = entry;
  duty.pin.release();
  duty.blocker.reset();
  duty.refused.clear();
  duty.exhausted = false;
  tell_holders(entry);
  if (duty.lost_ns != 0) {
    const std::uint64_t now = world_.state.clock.monotonic_ns();
    const double seconds = 1e-9 * static_cast<double>(now - duty.lost_ns);
    spdlog::info("has all its copies again job={} version={} node={} seconds={:.3f}",
                 world_.state.name, file.version, file.node, seconds);
    world_.state.record("reprotected", {{"version", file.version},
                                        {"of", file.node},
                                        {"bytes", duty.what.segment_bytes},
                                        {"seconds", seconds}});
    duty.lost_ns = 0;
  }
  const bool first = !std::exchange(duty.complete, true);
  if (first && is_own(file)) events_.protected_here(file.version);
}

// Each holder must know who the others are, for the day when this node is lost.
void Replicator::tell_holders(Entry& entry) {
  Duty& duty = entry.second;
  std::set<NodeId> all = duty.holders;
  all.insert(self_);
  for (const NodeId holder : duty.holders) {
    if (duty.told[holder] != all) send_keep(entry, holder);
  }
}

void Replicator::give_up(Entry& entry) {
  auto& [file, duty] = entry;
  duty.pin.release();
  duty.not_before_ns = world_.state.clock.monotonic_ns() + rest_ns;
  const std::size_t living = world_.peers.members() - lost_.size();
  std::string why =
      fmt::format("{} of {} copies on other nodes, {} of {} nodes live", duty.holders.size(),
                  settings_.replicas, living, world_.peers.members());
  Code code = Code::few_nodes;
  for (const auto& [node, error] : duty.refused) {
    why += fmt::format("; node {}: {}", node, error.to_string());
    code = error.code();
  }
  duty.refused.clear();
  duty.exhausted = false;
  if (duty.blocker) return;  // it was said
  duty.blocker = Error(code, why);
  record_unprotected(world_.state, file.version, file.node, *duty.blocker,
                     is_overtaken(world_.state, file.version, code));
}

std::optional<Error> Replicator::blockers(VersionNumber version) const {
  const auto own = duties_.find({version, world_.state.run, self_});
  return own == duties_.end() ? std::nullopt : own->second.blocker;
}

std::vector<Blocker> Replicator::blockers() const {
  std::vector<Blocker> all;
  for (const auto& [file, duty] : duties_) {
    if (!is_own(file) || !duty.blocker) continue;
    all.push_back({file.version, Level::protected_, duty.blocker->code(), duty.blocker->message()});
  }
  return all;
}

// --- others come and go --------------------------------------------------------------------------

void Replicator::on(NodeId from, const wire::peer::Keep& keep) {
  const Status good = check(keep);
  if (good.ok()) return replica_receiver_.keep(from, keep);
  world_.peers.send(from, wire::peer::Kept{keep.version, keep.run, keep.node, good.error().code(),
                                           good.error().message()});
}

void Replicator::lost(NodeId peer, const Error& why) {
  for (Entry& entry : duties_) {
    if (entry.second.asked.erase(peer) != 0) refused(entry, peer, why);
  }
}

void Replicator::membership(std::span<const NodeId> lost, std::span<const NodeId> back) {
  for (const NodeId node : back) lost_.erase(node);
  for (const NodeId node : lost) {
    if (node < world_.peers.members() && node != self_) lost_.insert(node);
  }
  for (Entry& entry : duties_) {
    for (const NodeId node : lost_) lose(entry, node, Error(Code::agent_lost, "the node is lost"));
    Duty& duty = entry.second;
    for (const NodeId node : back) duty.refused.erase(node);
    duty.exhausted = false;
    duty.not_before_ns = 0;
    begin_again(entry);
  }
}

void Replicator::lose(Entry& entry, NodeId node, const Error& why) {
  entry.second.holders.erase(node);
  entry.second.told.erase(node);
  if (entry.second.asked.erase(node) != 0) refused(entry, node, why);
}

// Copies are missing that there were: says so, once.
void Replicator::begin_again(Entry& entry) {
  auto& [file, duty] = entry;
  if (!duty.complete || duty.lost_ns != 0 || !is_wanted(entry) || !is_ours(entry)) return;
  duty.lost_ns = world_.state.clock.monotonic_ns();
  spdlog::warn("copies are missing, others are made job={} version={} node={} left={}",
               world_.state.name, file.version, file.node, duty.holders.size() + 1);
  world_.state.record(
      "reprotect_begin",
      {{"version", file.version}, {"of", file.node}, {"left", duty.holders.size() + 1}});
}

}  // namespace backstay::agent
