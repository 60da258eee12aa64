// A job's run on several nodes: how its other agents are found, and what they hear and say.
#include <utility>

#include "agent/group/message_table.h"
#include "agent/job/job.h"
#include "agent/job/job_status.h"
#include "base/log.h"

namespace backstay::agent {

// What a run before this one has under way with other agents needs them, and its versions may still
// be decided.
bool Job::may_begin_run() const {
  return commit_coordinator_.settled() && (redundancy_ == nullptr || restores_.empty());
}

Status Job::know(const wire::Neighbours& neighbours) {
  BACKSTAY_TRY(commit_coordinator_.know(neighbours));
  return neighbours.last && redundancy_ == nullptr ? find_neighbours() : Status();
}

Status Job::find_neighbours() {
  const PeerFileParts* parts = state_.store.peer_files();
  if (parts == nullptr) return Error(Code::unsupported, "this agent keeps nothing for others");
  RunMembership& run_membership = *commit_coordinator_.run_membership();
  ReplicatorSettings settings;
  settings.replicas = state_.replicas;
  settings.domains = run_membership.domains();
  settings.bytes_per_s = protect_bytes_per_s_;
  const std::string own = domain_of(state_.node);
  if (!own.empty())
    spdlog::info("failure domain job={} node={} domain={}", state_.name, state_.node, own);
  std::optional<ParitySettings> parity;
  if (parity_) parity = ParitySettings{*parity_, settings.domains, protect_bytes_per_s_};
  RedundancyEvents& events = *this;
  redundancy_ = std::make_unique<Redundancy>(state_, run_membership.peers(), *parts,
                                             std::move(settings), std::move(parity), events);
  status_poll_ = std::make_unique<StatusPoll>(run_membership.peers(), state_.clock);
  durability_.with(run_membership.peers(),
                   redundancy_->held());  // others may have a durable directory
  redundancy_->begin();
  files_.replay();
  return {};
}

std::shared_ptr<const Gathered> Job::look(std::size_t others_max, VersionOfRun version) {
  if (status_poll_) {
    return status_poll_->ask(seen_here(*this, version),
                             commit_coordinator_.run_membership()->lost(), others_max, version);
  }
  auto alone = std::make_shared<Gathered>();
  alone->done = true;
  if (state_.run != 0) {
    alone->members.push_back({state_.node, MemberSeen::State::ok, "", seen_here(*this, version)});
    alone->left_out = state_.nodes - 1;
  }
  return alone;
}

std::string Job::domain_of(NodeId node) const {
  const RunMembership* run_membership = commit_coordinator_.run_membership();
  return run_membership != nullptr && node < run_membership->domains().size()
             ? run_membership->domains()[node]
             : "";
}

std::vector<NodeId> Job::files_here(VersionOfRun version) const {
  std::vector<NodeId> nodes;
  if (redundancy_) {
    for (const auto& [file, held] : redundancy_->held().all()) {
      const bool wanted = VersionOfRun{file.version, file.run} == version && !file.parity;
      if (wanted) nodes.push_back(file.node);
    }
  } else if (const VersionRow* row = state_.versions.find(version.first);
             row != nullptr && row->good() && row->is_of(version.second) &&
             row->disk->record.nodes == 1) {
    nodes.push_back(0);
  }
  return nodes;
}

const HeldFile* Job::parity_here(VersionOfRun version) const {
  if (!redundancy_) return nullptr;
  for (const auto& [file, held] : redundancy_->held().all()) {
    if (file.parity && VersionOfRun{file.version, file.run} == version) return &held;
  }
  return nullptr;
}

void Job::listed(RemoteFiles& around) {
  set_around(&around);
  if (DrainCoordinator* drain = durability_.coordinator()) drain->listed();
}

void Job::directory_complete() {
  commit_coordinator_.run_membership()->enter(Redundancy::directory_barrier, 1);
}

void Job::protected_here(VersionNumber version) { commit_coordinator_.held_protected(version); }

bool Job::has_told(VersionNumber version) const {
  return commit_coordinator_.run_membership()->told(version) >= Level::protected_;
}

// A version of which there are only copies here is new to this node.
void Job::kept(const HeldFile& file) {
  if (DrainCoordinator* drain = durability_.coordinator()) drain->kept(file.file);
  const VersionNumber version = file.file.version;
  if (!file.record || !state_.is_gone(version)) return;
  state_.versions.found({version, file.record->level, *file.record}, Where::disk);
}

void Job::damaged(NodeId holder, const FileOf& file, const Error& why) {
  spdlog::warn("damaged job={} version={} file_of_node={} at={} why=\"{}\"", state_.name,
               file.version, file.node, holder, why.message());
}

void Job::released(std::uint64_t barrier, std::uint64_t) {
  if (redundancy_ && barrier == Redundancy::directory_barrier) redundancy_->open();
}

void Job::reached(NodeId member) {
  state_.versions.cut_off(member, std::nullopt);
  if (redundancy_) redundancy_->reached(member);
  if (DrainCoordinator* drain = durability_.coordinator()) drain->reached(member);
}

void Job::fact(const tree::Fact& fact) {
  blocker_publisher_.learn(fact);
  request_publisher_.learn(fact);
}

void Job::membership(const tree::Membership& change) {
  state_.versions.lost(commit_coordinator_.run_membership()->lost(), state_.clock.monotonic_ns());
  if (redundancy_) redundancy_->membership(change.lost, change.back);
  if (DrainCoordinator* drain = durability_.coordinator()) {
    drain->membership(tree::numbers(change.lost), tree::numbers(change.back));
  }
}

void Job::Files::message(NodeId from, const wire::peer::Message& message) {
  if (job_.redundancy_) return deliver(from, message);
  if (early_.size() < early_max) early_.emplace_back(from, message);
}

void Job::Files::replay() {
  for (const auto& [from, message] : std::exchange(early_, {})) {
    Files::message(from, message);
  }
}

// The table: each message and the room that takes it.
void Job::Files::deliver(NodeId from, const wire::peer::Message& message) {
  namespace peer = wire::peer;
  Redundancy& redundancy = *job_.redundancy_;
  const FileMessages files = redundancy.messages();
  StatusPoll& poll = *job_.status_poll_;
  const auto drain = [&](const DrainMessage& one) {
    if (DrainCoordinator* all = job_.durability_.coordinator()) all->message(from, one);
  };
  const MessageTable table{
      [&](const peer::Get& one) { files.on(from, one); },
      [&](const peer::No& one) { files.on(from, one); },
      [&](const peer::Keep& one) { files.on(from, one); },
      [&](const peer::Kept& one) { files.on(from, one); },
      [&](const peer::Holds& one) { files.on(from, one); },
      [&](const peer::HoldsSeen& one) { files.on(from, one); },
      [&](const peer::Lookup& one) { files.on(from, one); },
      [&](const peer::Holders& one) { files.on(from, one); },
      [&](const peer::Rebuild& one) { files.on(from, one); },
      [&](const peer::Rebuilt& one) { files.on(from, one); },
      [&](const peer::Doubt& one) { redundancy.on(from, one); },
      [&](const peer::Look& one) {
        poll.on(from, one, seen_here(job_, {one.version, one.run}));
      },
      [&](const peer::Seen& one) { poll.on(from, one); },
      [&](const peer::Due& one) { drain(one); },
      [&](const peer::Which& one) { drain(one); },
      [&](const peer::Parts& one) { drain(one); },
      [&](const peer::Turn& one) { drain(one); },
      [&](const peer::TurnOver& one) { drain(one); },
      [&](const peer::Durable& one) { drain(one); },
      [&](const peer::NotDurable& one) { drain(one); },
      [&](const peer::DurableGone& one) { drain(one); },
      [&](const wire::AskCut& one) { job_.cut_message(from, one); },
      [&](const wire::CutReport& one) { job_.cut_message(from, one); },
      [&](const wire::RefuseCut& one) { job_.cut_message(from, one); },
      [&](const wire::CutOrder& one) { job_.cut_message(from, one); },
      [&](const wire::CutOver& one) { job_.cut_message(from, one); },
      [&](const peer::WhoIsLate& one) { job_.cut_message(from, one); },
  };
  hand_out(message, table);
}

void Job::Files::offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer) {
  if (job_.redundancy_) return job_.redundancy_->offered(from, ticket, bytes, offer);
  job_.commit_coordinator_.run_membership()->peers().refuse(offer);
}

void Job::Files::lost(NodeId peer, const Error& why) {
  if (does_not_pass(why.code())) job_.state_.versions.cut_off(peer, why);
  if (job_.status_poll_) job_.status_poll_->lost(peer, why);
  if (job_.redundancy_) job_.redundancy_->lost(peer, why);
  if (DrainCoordinator* drain = job_.durability_.coordinator()) drain->lost(peer, why);
}

}  // namespace backstay::agent
