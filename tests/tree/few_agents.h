// A handful of agents and a network that a test moves by hand: messages stay in order and are lost
// only on request.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "tree/tree.h"

namespace backstay::tree {

class FewAgents {
 public:
  explicit FewAgents(std::uint32_t nodes, std::uint32_t arity = 2) {
    settings.run = 1;
    settings.nodes = nodes;
    settings.arity = arity;
    settings.strangers_max = 1;
    settings.address_of = [](NodeId node) { return "host" + std::to_string(node); };
  }

  void start(NodeId node, const std::vector<Remembered>& remembered = {}) {
    const Self self{node, ++lives, "host" + std::to_string(node)};
    agents[node] = std::make_unique<Tree>(settings, self, node, remembered);
    agents[node]->start();
    collect(node);
  }
  void start_all() {
    for (NodeId node = 0; node < settings.nodes; ++node) start(node);
    settle();
  }
  void kill(NodeId node) { agents.erase(node); }

  // Delivers until nothing flies.
  void settle() {
    while (!flying.empty()) {
      for (const auto& [from, sent] : std::exchange(flying, {})) {
        const NodeId to = sent.to.node;
        if (agents.count(to) == 0 || (lost && lost(from, to, sent.message))) continue;
        agents[to]->receive(from, sent.message);
        collect(to);
      }
    }
  }
  void tick(int times = 1) {
    for (; times > 0; --times) {
      for (auto& [node, agent] : agents) {
        agent->tick();
        collect(node);
      }
      settle();
    }
  }
  // With agent `node`, and then everything that follows.
  void with(NodeId node, const std::function<void(Tree&)>& what) {
    what(*agents.at(node));
    collect(node);
    settle();
  }
  Tree& at(NodeId node) { return *agents.at(node); }

  // Takes the outputs of one kind that a node has produced so far.
  template <typename T>
  std::vector<T> take(NodeId node) {
    std::vector<T> found;
    std::vector<Output> left;
    for (Output& output : outputs[node]) {
      if (auto* one = std::get_if<T>(&output)) {
        found.push_back(std::move(*one));
      } else {
        left.push_back(std::move(output));
      }
    }
    outputs[node] = std::move(left);
    return found;
  }

  Settings settings;
  std::map<NodeId, std::unique_ptr<Tree>> agents;
  std::function<bool(NodeId from, NodeId to, const Message&)> lost;
  std::vector<std::pair<NodeId, Send>> flying;
  std::map<NodeId, std::vector<Output>> outputs;
  std::uint64_t lives = 0;

 private:
  void collect(NodeId node) {
    for (Output& output : agents[node]->take()) {
      if (auto* sent = std::get_if<Send>(&output)) {
        flying.emplace_back(node, std::move(*sent));
      } else {
        outputs[node].push_back(std::move(output));
      }
    }
  }
};

}  // namespace backstay::tree
