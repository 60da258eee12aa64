#include "agent/drain/drain_coordinator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/disk/links.h"
#include "agent/drain/due_version.h"
#include "agent/drain/durable_message.h"
#include "agent/version/retention.h"
#include "base/check.h"
#include "base/log.h"

namespace backstay::agent {

namespace peer = wire::peer;

DrainCoordinator::DrainCoordinator(JobState& state, const Levels& levels, Peers* peers,
                                   const HeldFiles* held, DrainEvents& events)
    : state_(state),
      levels_(levels),
      peers_(peers),
      held_(held),
      self_(peers == nullptr ? 0 : peers->self()),
      members_(peers == nullptr ? 1 : peers->members()),
      events_(events),
      next_ticket_(state.clock.wall_ns()) {}

DrainCoordinator::~DrainCoordinator() {
  if (own_) state_.store.post_drain(StopPart{});
  if (version_) state_.store.post_drain(EndCopy{});
}

NodeId DrainCoordinator::coordinator() const {
  NodeId node = 0;
  while (lost_.count(node) != 0) ++node;
  return std::min(node, self_);
}

VersionNumber DrainCoordinator::copying() const {
  if (version_) return version_->record.version;
  return kept_ ? kept_->version.first : 0;
}

void DrainCoordinator::send(NodeId to, DrainMessage message) {
  if (alone()) {
    BACKSTAY_CHECK(to == self_);
    return to_self_.push_back(std::move(message));
  }
  std::visit([&](auto& one) { peers_->send(to, std::move(one)); }, message);
}

void DrainCoordinator::deliver() {
  while (!to_self_.empty()) {
    const DrainMessage next = std::move(to_self_.front());
    to_self_.pop_front();
    message(self_, next);
  }
}

void DrainCoordinator::tell_others(const DrainMessage& message) {
  for (NodeId node = 0; node < members_; ++node) {
    if (node != self_ && lost_.count(node) == 0) send(node, message);
  }
}

// --- what is due ---------------------------------------------------------------------------------

void DrainCoordinator::listed() {
  listed_ = true;
  for (const auto& [from, which] : std::exchange(early_, {})) on(from, which);
  consider();
}

void DrainCoordinator::consider() {
  if (!listed_ || !state_.durable_settings.on()) return;
  if (coordinator() != self_) return tell_due();
  if (!version_) begin();
}

// A version of this run is on the coordinator's disk too; one of an earlier run need not be.
void DrainCoordinator::tell_due() {
  const NodeId to = coordinator();
  if (said_to_ != to) said_.clear();
  said_to_ = to;
  const VersionNumber durable = newest_durable(state_);
  for (const auto& [number, row] : state_.versions.rows()) {
    if (!row.good() || row.durable()) continue;
    const format::CommitRecord& record = row.disk->record;
    const bool waited = levels_.wanted_durable(number);
    const bool left = record.run != state_.run && number > durable;
    if ((!waited && !left) || !said_.emplace(number, waited).second) continue;
    send(to, peer::Due{number, record.run, record.nodes, record.ranks, record.captured_ns, waited});
  }
}

void DrainCoordinator::on(NodeId, const peer::Due& due) {
  if (due.version == 0 || due.nodes == 0 || state_.is_durable(due.version)) return;
  peer::Due& known = due_[due.version];
  const bool waited = known.waited || due.waited;
  if (known.version == 0 || due.run > known.run) known = due;
  known.waited = waited;
  consider();
}

// --- the coordinator -----------------------------------------------------------------------------

void DrainCoordinator::begin() {
  DueVersion next(state_, target_);
  for (const auto& [number, row] : state_.versions.rows()) {
    // Of a version of several nodes a node alone has a part only.
    const bool has_all = !alone() || (row.good() && row.disk->record.nodes == 1);
    if (row.good() && has_all) next.consider(number, levels_.wanted_durable(number));
  }
  for (const auto& [number, due] : due_) next.consider(number, due.waited);
  const VersionNumber number = next.answer();
  if (number == 0) return;
  target_ = next.target();
  const VersionRow* here = state_.versions.find(number);
  if (here != nullptr && here->good()) return begin(here->disk->record);
  const peer::Due& due = due_.at(number);
  format::CommitRecord record;
  record.job = state_.name;
  record.version = number;
  record.run = due.run;
  record.nodes = due.nodes;
  record.ranks = due.ranks;
  record.captured_ns = due.captured_ns;
  begin(std::move(record));
}

void DrainCoordinator::begin(format::CommitRecord record) {
  BACKSTAY_CHECK(!version_ && record.version != 0);
  record.level = Level::durable;
  // What several nodes wrote is summed up again, as their parts are copied.
  format::CommitRecord wanted = record;
  if (record.nodes > 1) wanted.manifests_sum = 0;
  record.payload_bytes = 0;
  record.manifests_sum = 0;
  record.needs.clear();
  const Version& version =
      version_.emplace(Version{record,
                               VersionPin(state_.versions, record.version, PinReason::copying),
                               ++next_ticket_,
                               DrainSchedule(record.nodes, state_.durable_settings.nodes_max),
                               {},
                               {},
                               {}});
  state_.store.post_drain(PrepareCopy{version.ticket, std::move(wanted)});
}

// The lock is ours, so no other agent copies: now the members are asked, and leave what another
// coordinator had wanted.
void DrainCoordinator::ask_for_parts() {
  Version& version = *version_;
  BACKSTAY_CHECK(version.prepared && version.asked.empty() && version.given.empty());
  const format::CommitRecord& record = version.record;
  for (NodeId node = 0; node < members_; ++node) {
    if (lost_.count(node) != 0) continue;
    version.asked.insert(node);
    if (node != self_) {
      send(node, peer::Which{version.ticket, record.version, record.run});
    }
  }
  // At once, as everything that we say to ourselves about the version: in the order in which others
  // hear it.
  on(self_, peer::Which{version.ticket, record.version, record.run});
}

void DrainCoordinator::on(const CopyPrepared& event) {
  if (!version_ || version_->ticket != event.ticket) return;
  if (!event.status.ok()) return give_up(event.status.error());
  if (event.there) return on(VersionDurable{*event.there});
  version_->prepared = true;
  ask_for_parts();
}

void DrainCoordinator::on(NodeId from, const peer::Parts& parts) {
  if (!version_ || version_->ticket != parts.ticket) return;
  version_->asked.erase(from);  // or it says more than it had at first
  version_->turns.has(from, parts.nodes);
  go_on();
}

void DrainCoordinator::go_on() {
  BACKSTAY_CHECK(version_);
  if (!version_->prepared || !version_->asked.empty() || version_->committing) return;
  if (version_->given_up) return end_if_over();
  const format::CommitRecord& record = version_->record;
  if (const auto node = version_->turns.missing()) {
    return give_up(version_->last_trouble.value_or(Error(
        Code::not_found, fmt::format("the part of node {} is on no node that is left", *node))));
  }
  while (const auto turn = version_->turns.next()) {
    const std::uint64_t ticket = ++next_ticket_;
    version_->given[ticket] = *turn;
    send(turn->agent, peer::Turn{ticket, record.version, record.run, turn->file});
  }
  if (!version_->turns.complete()) return;
  if (const auto wrong = format::wrong_with_needs(record.needs, record.version); !wrong.empty()) {
    return give_up(Error(Code::unsupported, fmt::format("its nodes together: {}", wrong)));
  }
  commit();
}

void DrainCoordinator::on(NodeId from, const peer::TurnOver& over) {
  if (!version_) return;
  const auto given = version_->given.find(over.ticket);
  if (given == version_->given.end() || given->second.agent != from) return;
  const DrainSchedule::Turn turn = given->second;
  version_->given.erase(given);
  if (over.code == Code::ok) {
    version_->turns.done(turn);
    version_->record.payload_bytes += over.payload_bytes;
    version_->record.manifests_sum += over.digest;
    version_->record.needs = format::both_needs(version_->record.needs, as_needs(over.needs));
    return go_on();
  }
  version_->turns.failed(turn);
  version_->damaged = over.damaged && alone();
  const Error why(over.code,
                  alone() ? over.message : fmt::format("node {}: {}", from, over.message));
  version_->last_trouble = why;
  // Where its own file is bad or gone another may have a good one; what the shared storage says it
  // says to all.
  const bool elsewhere = over.damaged || over.code == Code::not_found;
  elsewhere || version_->given_up ? go_on() : give_up(why);
}

void DrainCoordinator::commit() {
  BACKSTAY_CHECK(version_->prepared && !version_->given_up && !version_->committing);
  BACKSTAY_CHECK(version_->given.empty());  // no part is written any more
  version_->committing = true;
  version_->record.committed_ns = state_.clock.wall_ns();
  // Of an earlier run of several nodes: a restart of another one may still be reading an older one.
  CommitCopy last{version_->record};
  if (alone() || version_->record.run == state_.run) {
    last.expired = shared_expired(state_.versions, version_->record, state_.durable_settings.keep);
  }
  state_.store.post_drain(std::move(last));
}

void DrainCoordinator::on(const VersionDurable& event) {
  const format::CommitRecord& record = event.stored.record;
  if (!version_ || version_->record.version != record.version) return;
  version_.reset();
  const peer::Durable durable = as_message(record);
  tell_others(durable);
  on(self_, durable);
}

// The record could not be written.
void DrainCoordinator::on(const CopyFailed& event) {
  if (!version_ || version_->record.version != event.version || !version_->committing) return;
  version_->committing = false;
  give_up(event.error);
}

void DrainCoordinator::on(const Removed& event) {
  for (const VersionNumber version : event.versions) {
    note_gone(version);
    tell_others(peer::DurableGone{version, 0});
  }
}

void DrainCoordinator::note_gone(VersionNumber version) {
  constexpr std::size_t most = 64;  // who missed more learns it from the directory, in the next run
  gone_.insert(version);
  if (gone_.size() > most) gone_.erase(gone_.begin());
}

void DrainCoordinator::give_up(const Error& why) {
  if (std::exchange(version_->given_up, true)) return;
  version_->prepared = true;  // or will not be
  version_->asked.clear();
  const auto [version, run] = VersionOfRun(version_->record.version, version_->record.run);
  tell_given_up(version, run, why);
  const VersionRow* target = state_.versions.find(target_);
  if (target_ != version && target != nullptr && target->good()) {
    tell_given_up(
        target_, target->disk->record.run,
        Error(why.code(), fmt::format("version {}, which it needs: {}", version, why.message())));
  }
  end_if_over();
}

void DrainCoordinator::tell_given_up(VersionNumber version, RunId run, const Error& why) {
  const peer::NotDurable message{version, run, why.code(), why.message()};
  tell_others(message);
  on(self_, message);
}

// The lock is kept until no member writes any more; the next version waits for that too.
void DrainCoordinator::end_if_over() {
  BACKSTAY_CHECK(version_ && version_->given_up);
  if (!version_->given.empty()) return;
  state_.store.post_drain(EndCopy{});
  version_.reset();
  consider();
}

void DrainCoordinator::lose(NodeId member, const Error& why) {
  if (!version_ || version_->committing) return;
  const std::size_t turns = std::erase_if(
      version_->given, [member](const auto& entry) { return entry.second.agent == member; });
  const bool asked = version_->asked.erase(member) != 0;
  version_->turns.lost(member);
  if (turns == 0 && !asked && !version_->turns.missing()) return;
  version_->last_trouble =
      Error(Code::agent_lost, fmt::format("node {} is lost: {}", member, why.message()));
  go_on();
}

// --- the other agents ----------------------------------------------------------------------------

void DrainCoordinator::message(NodeId from, const DrainMessage& message) {
  std::visit([&](const auto& one) { on(from, one); }, message);
}

void DrainCoordinator::lost(NodeId peer, const Error& why) {
  let_go(peer);
  lose(peer, why);
}

void DrainCoordinator::reached(NodeId peer) {
  said_to_.reset();
  consider();
  if (coordinator() == self_ && peer != self_) tell_durable(peer);
}

// What it may have missed.
void DrainCoordinator::tell_durable(NodeId peer) {
  for (const VersionNumber version : gone_) send(peer, peer::DurableGone{version, 0});
  for (const auto& [number, row] : state_.versions.rows()) {
    if (!row.durable()) continue;
    const format::CommitRecord& record = row.shared->record;
    if (record.run == state_.run) send(peer, as_message(record));
  }
}

void DrainCoordinator::membership(std::span<const NodeId> lost, std::span<const NodeId> back) {
  const NodeId before = coordinator();
  for (const NodeId node : lost) {
    if (node == self_ || !lost_.insert(node).second) continue;
    this->lost(node, Error(Code::agent_lost, "nothing was heard of it"));
  }
  for (const NodeId node : back) lost_.erase(node);
  if (coordinator() == self_ && before != self_) {
    for (NodeId node = 0; node < members_; ++node) {
      if (node != self_ && lost_.count(node) == 0) tell_durable(node);
    }
  }
  consider();
}

}  // namespace backstay::agent
