// The drain coordinator as a member: what each agent does for the one that gives the turns.
#include <utility>

#include "agent/disk/links.h"
#include "agent/drain/drain_coordinator.h"
#include "agent/drain/durable_message.h"
#include "base/check.h"

namespace backstay::agent {

namespace peer = wire::peer;

void DrainCoordinator::on(NodeId from, const peer::Which& which) {
  if (!listed_) return early_.emplace_back(from, which), void();
  peer::Parts answer{which.ticket, files_of({which.version, which.run})};
  if (own_) state_.store.post_drain(StopPart{});
  keep(Kept{{which.version, which.run}, from, which.ticket, {}});
  send(from, std::move(answer));
}

// The nodes whose files of the version are on this node's disk.
std::vector<NodeId> DrainCoordinator::files_of(VersionOfRun version) const {
  std::vector<NodeId> nodes;
  if (held_ == nullptr) {
    if (record_of_file({version.first, version.second, self_})) nodes.push_back(self_);
    return nodes;
  }
  for (const auto& [file, held] : held_->all()) {
    const bool wanted = VersionOfRun{file.version, file.run} == version && !file.parity;
    if (wanted && nodes.size() < wire::list_entries_max) nodes.push_back(file.node);
  }
  return nodes;
}

// Of the version of that file; as far as it is known, where no record is here. nullopt: the file is
// not here.
std::optional<format::CommitRecord> DrainCoordinator::record_of_file(const FileOf& file) const {
  if (held_ == nullptr) {
    const VersionRow* row = state_.versions.find(file.version);
    const bool here = row != nullptr && row->good() && row->is_of(file.run);
    return here && row->disk->record.nodes == 1 ? std::optional(row->disk->record) : std::nullopt;
  }
  const HeldFile* held = held_->find(file);
  if (held == nullptr || held->record) return held == nullptr ? std::nullopt : held->record;
  format::CommitRecord record;
  record.job = state_.name;
  record.version = file.version;
  record.run = file.run;
  record.nodes = held->nodes;
  record.ranks = held->ranks_of_run;
  return record;
}

void DrainCoordinator::kept(const FileOf& file) {
  if (!kept_ || file.parity || kept_->version != VersionOfRun{file.version, file.run}) return;
  send(kept_->from, peer::Parts{kept_->ticket, {file.node}});
}

void DrainCoordinator::on(NodeId from, const peer::Turn& turn) {
  if (!own_) return write({from, turn});
  if (next_own_) answer(*next_own_, Error(Code::again, "superseded by another coordinator"));
  next_own_ = Own{from, turn};
}

void DrainCoordinator::write(const Own& own) {
  BACKSTAY_CHECK(!own_);  // one turn at a time
  const auto& [ticket, version, run, node] = own.turn;
  auto record = record_of_file(FileOf{version, run, node});
  if (!record || !kept_ || kept_->version != VersionOfRun{version, run}) {
    return answer(own, Error(Code::not_found, "it has no such file any more"));
  }
  own_ = own;
  state_.store.post_drain(CopyPart{ticket, std::move(*record), node,
                                   state_.durable_settings.bytes_per_s,
                                   state_.pooled({version, run, node})});
}

void DrainCoordinator::on(const PartCopied& event) {
  if (!own_ || own_->turn.ticket != event.ticket) return;
  peer::TurnOver over{event.ticket,
                      Code::ok,
                      "",
                      event.source_is_damaged,
                      event.payload_bytes,
                      event.digest,
                      as_message(event.needs)};
  if (!event.status.ok()) {
    over.code = event.status.error().code();
    over.message = event.status.error().message();
  }
  send(own_->from, std::move(over));
  own_.reset();
  if (const auto next = std::exchange(next_own_, std::nullopt)) write(*next);
}

void DrainCoordinator::answer(const Own& own, const Error& why) {
  send(own.from, peer::TurnOver{own.turn.ticket, why.code(), why.message(), false, 0, 0, {}});
}

void DrainCoordinator::on(NodeId, const peer::Durable& durable) {
  due_.erase(durable.version);
  if (kept_ && kept_->version == VersionOfRun{durable.version, durable.run}) keep(std::nullopt);
  const format::CommitRecord record = as_record(durable, state_.name);
  if (!format::wrong_with_needs(record.needs, record.version).empty()) return;
  const StoredVersion stored{record.version, record.level, record};
  const bool known = state_.is_durable(record.version);
  state_.store.post_drain(Reopen{});
  if (!known) events_.durable(stored);
  consider();
}

// Another one, which takes itself for the coordinator too, may have given up what ours goes on
// with.
void DrainCoordinator::on(NodeId from, const peer::NotDurable& why) {
  if (state_.is_durable(why.version)) return;
  const bool kept = kept_ && kept_->version == VersionOfRun{why.version, why.run};
  const bool for_another = kept && kept_->from != from;
  if (for_another && from != self_) return;
  due_.erase(why.version);
  if (kept && !for_another) {
    if (own_) state_.store.post_drain(StopPart{});
    keep(std::nullopt);
  }
  const bool damaged = version_ && version_->damaged && version_->record.version == why.version;
  events_.failed(CopyFailed{why.version, Error(why.code, why.message), damaged});
  consider();
}

void DrainCoordinator::on(NodeId, const peer::DurableGone& gone) {
  note_gone(gone.version);
  const VersionRow* row = state_.versions.find(gone.version);
  if (row == nullptr || !row->shared) return;
  events_.gone(gone.version);
}

void DrainCoordinator::keep(std::optional<Kept> what) {
  kept_ = std::move(what);
  if (!kept_) return;
  kept_->pin = VersionPin(state_.versions, kept_->version.first, PinReason::copying);
}

void DrainCoordinator::let_go(NodeId coordinator) {
  if (own_ && own_->from == coordinator) state_.store.post_drain(StopPart{});
  if (kept_ && kept_->from == coordinator) keep(std::nullopt);
  std::erase_if(early_, [coordinator](const auto& asked) { return asked.first == coordinator; });
}

}  // namespace backstay::agent
