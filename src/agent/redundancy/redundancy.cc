#include "agent/redundancy/redundancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "store/needed_files.h"

namespace backstay::agent {

Redundancy::Redundancy(JobState& state, Peers& peers, PeerFileParts parts,
                       ReplicatorSettings settings, std::optional<ParitySettings> parity,
                       RedundancyEvents& events)
    : state_(state),
      peers_(peers),
      parts_(parts),
      events_(events),
      pool_first_(state, parts.peer_files),
      transfers_(peers, pool_first_, parts.serving, state.clock.wall_ns()),
      directory_(peers),
      protects_(settings.replicas > 0 || parity),
      replicator_({state, peers, transfers_, parts.peer_files, parts.keeping}, directory_.held(),
                  std::move(settings), *this),
      stripe_coder_(transfers_, parts.peer_files, parts.keeping.buffer_bytes()),
      retention_pin_(state.versions, state.run,
                     [this](VersionNumber version) { return events_.has_told(version); }),
      rebuilder_({state, peers, transfers_, parts.peer_files, parts.keeping}, stripe_coder_,
                 directory_, *this) {
  if (!parity) return;
  FileEvents& events_of_parity = *this;
  parity_encoder_.emplace(
      ReplicatorWorld{state, peers, transfers_, parts.peer_files, parts.keeping}, stripe_coder_,
      *parity, events_of_parity);
}

// From now on what the file needs stays too.
void Redundancy::hold(const HeldFile& file) {
  state_.versions.needs({file.file.version, file.file.run}, store::needs_of(file.needs));
  directory_.add(file);
}

void Redundancy::begin() {
  parts_.peer_files.post(ListFiles{
      callback_guard_([this](Result<std::vector<HeldFile>> files) { listed(std::move(files)); })});
}

void Redundancy::listed(Result<std::vector<HeldFile>> files) {
  if (!files.ok()) {
    spdlog::error("what this node holds is not known job={} error=\"{}\"", state_.name,
                  files.error().to_string());
  }
  std::vector<HeldFile> all = files.ok() ? std::move(*files) : std::vector<HeldFile>();
  std::erase_if(all, [this](const HeldFile& one) { return gone_.contains(one.file.version); });
  gone_.clear();
  listed_ = true;
  for (const HeldFile& one : all) {
    state_.versions.needs({one.file.version, one.file.run}, store::needs_of(one.needs));
  }
  directory_.announce(all);
  replicator_.listed(all);
  if (parity_encoder_) parity_encoder_->listed(all);
  events_.listed(*this);
}

void Redundancy::sealed(const HeldFile& file) {
  hold(file);
  replicator_.sealed(file);
}

void Redundancy::recorded(const format::CommitRecord& record) {
  std::vector<HeldFile> now;
  for (const auto& [file, held] : directory_.held().all()) {
    if (file.version == record.version && file.run == record.run) now.push_back(held);
  }
  for (HeldFile& held : now) {
    held.record = record;
    directory_.add(held);
  }
  replicator_.recorded(record);
  if (parity_encoder_) parity_encoder_->recorded(record);
}

void Redundancy::protected_everywhere(VersionNumber version) {
  replicator_.protected_everywhere(version);
  if (protects_) retention_pin_.choose();  // before retention removes
}

void Redundancy::protected_here(VersionNumber version) {
  if (parity_encoder_) {
    encoded_.insert(version);
    return tell_encoded();
  }
  retention_pin_.protected_here(version);
  events_.protected_here(version);
}

// Where its group needs files that could not be made again: one of them.
std::optional<Error> Redundancy::lacks_parity(VersionNumber version) const {
  const FileOf parity{version, state_.run, state_.node, /*parity=*/true};
  if (directory_.held().find(parity) == nullptr)
    return Error(Code::not_found, "its parity is gone");
  const auto lacking = directory_.held().needs_without_parity(parity);
  if (!lacking) return std::nullopt;
  return Error(
      Code::unsupported,
      fmt::format("it needs version {}, of which this node has no parity of this run", *lacking));
}

// With replicas what a file needs is copied with it. Parity of an earlier run counts as in
// HeldFiles::needs_without_parity, which is what the level is told by.
bool Redundancy::may_be_needed(const FileOf& file) const {
  const HeldFiles& held = directory_.held();
  if (held.find(file) == nullptr || repaired_.contains(file)) return false;
  if (!parity_encoder_) return true;
  const FileOf parity{file.version, file.run, file.node, /*parity=*/true};
  return file.node == state_.node && held.find(parity) != nullptr &&
         held.find(parity)->of.makes_up_for(parity_encoder_->protection()) &&
         !held.needs_without_parity(parity);
}

// Parity of an older version may be made after that of one which needs it.
void Redundancy::tell_encoded() {
  for (auto at = encoded_.begin(); at != encoded_.end();) {
    const VersionNumber version = *at;
    if (lacks_parity(version)) {
      ++at;
      continue;
    }
    at = encoded_.erase(at);
    retention_pin_.protected_here(version);
    events_.protected_here(version);
  }
}

std::vector<Blocker> Redundancy::blockers() const {
  if (!parity_encoder_) return replicator_.blockers();
  std::vector<Blocker> all = parity_encoder_->blockers();
  for (const VersionNumber version : encoded_) {
    if (const auto lacks = lacks_parity(version)) {
      all.push_back({version, Level::protected_, lacks->code(), lacks->message()});
    }
  }
  return all;
}

void Redundancy::removed(VersionNumber version) {
  if (!listed_) gone_.insert(version);
  std::vector<FileOf> gone;
  for (const auto& [file, held] : directory_.held().all()) {
    if (file.version == version) gone.push_back(file);
  }
  for (const FileOf& file : gone) directory_.remove(file);
  replicator_.removed(version);
  if (parity_encoder_) parity_encoder_->removed(version);
  rebuilder_.removed(version);
  encoded_.erase(version);
}

void Redundancy::brought_back(VersionOfRun version) {
  if (!protects_ || version.second == state_.run) return;
  for (const auto& [file, held] : directory_.held().all()) {
    if (VersionOfRun{file.version, file.run} != version || file.parity || held.ranks.empty())
      continue;
    directory_.lookup(
        version, held.ranks.front(),
        callback_guard_([this, file = file](Result<std::vector<wire::peer::Holder>> holders) {
          if (holders.ok()) inherit(file, *holders);
        }));
  }
}

void Redundancy::inherit(const FileOf& file, const std::vector<wire::peer::Holder>& holders) {
  const HeldFile* held = directory_.held().find(file);
  if (held == nullptr) return;  // it has been removed meanwhile
  std::set<NodeId> others;
  for (const wire::peer::Holder& one : holders) {
    if (one.node == file.node) others.insert(one.agent);
  }
  replicator_.inherited(*held, std::move(others));
}

void Redundancy::kept(const HeldFile& file) {
  hold(file);
  if (file.file.parity) return;
  if (repaired_.erase(file.file) != 0) {
    spdlog::info("a damaged file is good again job={} version={} node={}", state_.name,
                 file.file.version, file.file.node);
    state_.record("repaired", {{"version", file.file.version}, {"of", file.file.node}});
  }
  events_.kept(file);
}

// --- what was found damaged ----------------------------------------------------------------------

void Redundancy::damaged(NodeId holder, const FileOf& file, const Error& why) {
  events_.damaged(holder, file, why);
  doubt(holder, file);
}

void Redundancy::doubt(NodeId holder, const FileOf& file) {
  if (holder == state_.node) return repair(file);
  peers_.send(holder, wire::peer::Doubt{file.version, file.run, file.node});
}

// From another holder. Once: what is damaged again has a cause that copying does not remove.
void Redundancy::repair(const FileOf& file) {
  const HeldFile* held = directory_.held().find(file);
  if (held == nullptr || held->ranks.empty() || !doubted_.insert(file).second) return;
  directory_.lookup(
      {file.version, file.run}, held->ranks.front(),
      callback_guard_([this, file = file](Result<std::vector<wire::peer::Holder>> holders) {
        if (!holders.ok() || !repair_from(file, *holders)) doubted_.erase(file);
      }));
}

// False: there is no other holder now; the agent that makes it again reports another damage.
bool Redundancy::repair_from(const FileOf& file, const std::vector<wire::peer::Holder>& holders) {
  const HeldFile* held = directory_.held().find(file);
  const auto other = std::ranges::find_if(holders, [&](const wire::peer::Holder& one) {
    return one.node == file.node && one.agent != state_.node;
  });
  if (held == nullptr || other == holders.end()) return false;
  spdlog::warn("a damaged file is replaced job={} version={} node={} from={}", state_.name,
               file.version, file.node, other->agent);
  repaired_.insert(file);
  replicator_.repair(*held, other->agent);
  return true;
}

void Redundancy::membership(const tree::NodeSet& lost, const tree::NodeSet& back) {
  const std::vector<NodeId> gone = tree::numbers(lost);
  const std::vector<NodeId> here = tree::numbers(back);
  for (const NodeId node : gone) directory_.lost(node, Error(Code::agent_lost, "its node is lost"));
  for (const NodeId node : here) directory_.back(node);
  replicator_.membership(gone, here);
  if (parity_encoder_) parity_encoder_->membership(gone, here);
}

std::uint64_t Redundancy::pump() {
  if (directory_.complete() && !std::exchange(complete_told_, true)) events_.directory_complete();
  if (protects_) retention_pin_.choose();
  transfers_.serve();
  const std::uint64_t parity_encoder_wants =
      parity_encoder_ ? parity_encoder_->pump() : no_deadline;
  return std::min({replicator_.pump(), parity_encoder_wants, rebuilder_.pump()});
}

FileMessages Redundancy::messages() {
  return {transfers_, directory_, replicator_, rebuilder_,
          parity_encoder_ ? &*parity_encoder_ : nullptr};
}

void Redundancy::on(NodeId, const wire::peer::Doubt& doubt) {
  repair({doubt.version, doubt.run, doubt.node});
}

void Redundancy::offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer) {
  transfers_.offered(from, ticket, bytes, offer);
}

void Redundancy::lost(NodeId peer, const Error& why) {
  transfers_.lost(peer, why);
  directory_.lost(peer, why);
  replicator_.lost(peer, why);
  rebuilder_.lost(peer, why);
  if (parity_encoder_) parity_encoder_->lost(peer);
}

}  // namespace backstay::agent
