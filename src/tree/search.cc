#include "tree/search.h"

#include <algorithm>

namespace backstay::tree {

namespace {
constexpr std::size_t hints_max = 8;
}

Search::Search(NodeId self, std::uint32_t nodes, const Place& place,
               std::function<std::string(NodeId)> address_of, SplitMix64& random)
    : self_(self),
      nodes_(nodes),
      place_(place),
      address_of_(std::move(address_of)),
      random_(random) {}

void Search::begin(std::vector<NodeId> ancestors, std::optional<NodeId> silent) {
  ancestors_ = std::move(ancestors);
  hints_.clear();
  rounds_ = 0;
  wait_ticks_ = 0;
  fill(silent);
}

void Search::hint(Peer peer) {
  if (peer.node == self_) return;
  std::erase_if(hints_, [&](const Peer& known) { return known.node == peer.node; });
  hints_.push_front(std::move(peer));
  if (hints_.size() > hints_max) hints_.pop_back();
}

std::optional<Peer> Search::next() {
  std::deque<Peer>& from = hints_.empty() ? round_ : hints_;
  if (from.empty()) return std::nullopt;
  Peer peer = std::move(from.front());
  from.pop_front();
  if (round_.empty() && wait_ticks_ == 0) {
    wait_ticks_ = 1 + random_.below(std::min(1U << std::min(rounds_, 8U), wait_ticks_max));
    ++rounds_;
  }
  return peer;
}

void Search::tick() {
  if (wait_ticks_ > 0 && --wait_ticks_ == 0) fill();
}

void Search::fill(std::optional<NodeId> silent) {
  round_.clear();
  if (self_ == 0) return;  // no node has a lower number
  for (auto at = place_.ancestors.rbegin(); at != place_.ancestors.rend(); ++at) {
    put(*at);
    // The home first, then the nodes that know us, then the rest of the undamaged path.
    if (at != place_.ancestors.rbegin()) continue;
    for (auto known = ancestors_.rbegin(); known != ancestors_.rend(); ++known) put(*known);
  }
  const NodeId end = std::min<NodeId>(self_, nodes_);
  put(lower_++ % end);
  put(random_.below(nodes_));
  if (silent) {
    std::erase_if(round_, [&](const Peer& peer) { return peer.node == *silent; });
    put(*silent);
  }
}

void Search::put(NodeId node) {
  const auto same = [&](const Peer& peer) { return peer.node == node; };
  if (node == self_ || std::any_of(round_.begin(), round_.end(), same)) return;
  round_.push_back({node, address_of_(node)});
}

}  // namespace backstay::tree
