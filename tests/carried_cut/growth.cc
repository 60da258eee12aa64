#include "carried_cut/growth.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "agent/cut/cut_relay.h"
#include "cut/rank.h"
#include "tree/shape.h"

namespace backstay::agent::test {

namespace {

constexpr std::uint32_t arity = 16;

class Growth {
 public:
  explicit Growth(std::uint32_t nodes) : traffic_(nodes), woken_(nodes, false) {
    relays_.reserve(nodes);
    ranks_.reserve(nodes);
    for (NodeId node = 0; node < nodes; ++node) {
      relays_.emplace_back(CutFacts{node, "n", nodes, nodes, 1, 1});
      const tree::Place place = tree::place_of(node, nodes, arity);
      tree::Links links;
      if (!place.ancestors.empty()) links.parent = place.ancestors.back();
      links.children = place.children;
      links.changes = 1;
      relays_[node].see(links, nodes, 0, 1);
      relays_[node].joined(node);
      cut::Rank& rank = ranks_.emplace_back(0, 1);  // which sends no messages, and needs nobody
      rank.open(0);
      rank.open(1 + node / 64);
      if (node % 2 == 0) (void)rank.may_begin(0);
      if (node % 2 == 0) (void)rank.may_begin(1 + node / 64);
    }
  }

  void play() {
    (void)relays_[0].receive(0, wire::AskCut{0, 60'000});
    wake(0);
    while (!queue_.empty()) {
      ++turns_;
      for (const NodeId node : std::exchange(queue_, {})) {
        woken_[node] = false;
        relays_[node].pump();
        collect(node);
      }
      for (auto& [from, to, message] : std::exchange(net_, {})) {
        std::visit(
            [&, from = from, to = to]<typename M>(const M& one) {
              if constexpr (requires { relays_[to].on(from, one); }) relays_[to].on(from, one);
            },
            message);
        wake(to);
        collect(to);
      }
    }
  }

  Cost cost() const {
    Cost cost;
    cost.turns = turns_;
    cost.saved = saved_;
    cost.of_node_0 = traffic_[0];
    Traffic sum;
    for (const Traffic& one : traffic_) {
      cost.most.messages = std::max(cost.most.messages, one.messages);
      cost.most.bytes = std::max(cost.most.bytes, one.bytes);
      sum.messages += one.messages;
      sum.bytes += one.bytes;
    }
    const auto count = static_cast<double>(traffic_.size());
    cost.mean_messages = static_cast<double>(sum.messages) / count;
    cost.mean_bytes = static_cast<double>(sum.bytes) / count;
    return cost;
  }

 private:
  struct Packet {
    NodeId from = 0, to = 0;
    wire::peer::Message message;
  };

  void wake(NodeId node) {
    if (woken_[node]) return;
    woken_[node] = true;
    queue_.push_back(node);
  }

  void collect(NodeId node) {
    for (const CutOutput& output : relays_[node].take()) {
      if (const auto* told = std::get_if<TellRank>(&output)) {
        if (const auto* order = std::get_if<wire::CutOrder>(&told->message)) obey(node, *order);
      } else if (const auto* sent = std::get_if<TellAgent>(&output)) {
        const std::uint64_t bytes = wire::peer::encode(sent->message)->size();
        for (const NodeId end : {node, sent->node}) {
          ++traffic_[end].messages;
          traffic_[end].bytes += bytes;
        }
        net_.push_back({node, sent->node, sent->message});
      } else if (const auto* ended = std::get_if<CutEnded>(&output)) {
        saved_ = ended->how.code == Code::ok;
      }
    }
  }

  void obey(NodeId node, const wire::CutOrder& part) {
    auto whole = parts_[node].put(part);
    if (!whole.ok() || !whole->has_value()) return;
    cut::Rank& rank = ranks_[node];
    rank.receive(**whole);
    for (bool more = true; more;) {
      more = false;
      for (const cut::RankOutput& output : rank.take()) {
        more = true;
        if (const auto* report = std::get_if<cut::Report>(&output)) {
          const auto messages = cut::as_messages(*report);
          for (const auto& message : *messages) (void)relays_[node].receive(node, message);
          wake(node);
        } else if (std::holds_alternative<cut::Stop>(output)) {
          rank.stands();
        } else if (std::holds_alternative<cut::Save>(output)) {
          rank.saved();
        } else if (std::holds_alternative<cut::Wake>(output)) {
          if (rank.begun(0) == 0) (void)rank.may_begin(0);
          if (rank.begun(1 + node / 64) == 0) (void)rank.may_begin(1 + node / 64);
        }
      }
    }
  }

  std::vector<CutRelay> relays_;
  std::vector<cut::Rank> ranks_;
  std::map<NodeId, cut::OrderParts> parts_;
  std::vector<Traffic> traffic_;
  std::vector<bool> woken_;
  std::vector<NodeId> queue_;
  std::vector<Packet> net_;
  std::uint64_t turns_ = 0;
  bool saved_ = false;
};

}  // namespace

Cost cost_of_a_cut(std::uint32_t nodes) {
  Growth growth(nodes);
  growth.play();
  return growth.cost();
}

}  // namespace backstay::agent::test
