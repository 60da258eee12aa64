#include "agent/group/status_poll.h"

#include <algorithm>
#include <utility>

namespace backstay::agent {

StatusPoll::~StatusPoll() {
  for (auto& [ticket, open] : open_) open.gathered->done = true;
}

std::shared_ptr<const Gathered> StatusPoll::ask(wire::peer::Seen own, const tree::NodeSet& lost,
                                                std::size_t others_max, VersionOfRun version) {
  const std::uint64_t ticket = ++last_ticket_;
  Open open{std::make_shared<Gathered>(), {}, clock_.monotonic_ns() + patience_ns};
  std::vector<MemberSeen>& members = open.gathered->members;
  std::size_t others = 0;
  for (NodeId node = 0; node < peers_.members(); ++node) {
    if (node == peers_.self()) {
      members.push_back({node, MemberSeen::State::ok, "", std::move(own)});
    } else if (others++ >= std::min(others_max, asked_max)) {
      ++open.gathered->left_out;
    } else if (lost.contains(node)) {
      members.push_back({node, MemberSeen::State::lost, "its agent is not heard of any more", {}});
    } else {
      open.waiting[node] = members.size();
      members.push_back({node, MemberSeen::State::no_answer, "it has not answered in time", {}});
    }
  }
  const std::shared_ptr<const Gathered> gathered = open.gathered;
  std::vector<NodeId> asked;
  for (const auto& [node, place] : open.waiting) asked.push_back(node);
  close_if_all(open);
  open_.emplace(ticket, std::move(open));
  for (const NodeId node : asked)
    peers_.send(node, wire::peer::Look{ticket, version.first, version.second});
  return gathered;
}

void StatusPoll::close_if_all(Open& open) {
  if (open.waiting.empty()) open.gathered->done = true;
}

void StatusPoll::on(NodeId from, const wire::peer::Look& look, wire::peer::Seen own) {
  own.ticket = look.ticket;
  peers_.send(from, std::move(own));
}

void StatusPoll::on(NodeId from, const wire::peer::Seen& seen) {
  const auto open = open_.find(seen.ticket);
  if (open == open_.end()) return;  // too late
  const auto place = open->second.waiting.extract(from);
  if (place.empty()) return;
  open->second.gathered->members[place.mapped()] = {from, MemberSeen::State::ok, "", seen};
  close_if_all(open->second);
}

void StatusPoll::lost(NodeId peer, const Error& why) {
  for (auto& [ticket, open] : open_) {
    const auto place = open.waiting.extract(peer);
    if (place.empty()) continue;
    open.gathered->members[place.mapped()].why = why.message();
    close_if_all(open);
  }
}

std::uint64_t StatusPoll::pump() {
  const std::uint64_t now = clock_.monotonic_ns();
  std::uint64_t next = no_deadline;
  for (auto& [ticket, open] : open_) {
    if (now >= open.until_ns) open.gathered->done = true;
    if (!open.gathered->done) next = std::min(next, open.until_ns);
  }
  std::erase_if(open_, [](const auto& entry) { return entry.second.gathered->done; });
  return next;
}

}  // namespace backstay::agent
