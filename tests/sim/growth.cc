#include "sim/growth.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/check.h"
#include "tree/tree.h"

namespace backstay::sim {

namespace {

using tree::Tree;

constexpr std::uint32_t rounds_max = 1000;
constexpr std::uint32_t ticks_max = 500;

class Cluster {
 public:
  Cluster(std::uint32_t nodes, std::uint32_t arity) : agents_(nodes), messages_(nodes) {
    settings_.run = 1;
    settings_.nodes = nodes;
    settings_.arity = arity;
    settings_.address_of = [](NodeId) { return std::string("host"); };
    for (NodeId node = 0; node < nodes; ++node) make(node);
  }

  Cost join() {
    each([](NodeId, Tree& tree) { tree.start(); });
    return until([this] { return agents_[0]->present().count() == agents_.size(); });
  }

  Cost tick() {
    each([](NodeId, Tree& tree) { tree.tick(); });
    return until([] { return false; });
  }

  Cost barrier(std::uint64_t round) {
    released_ = 0;
    each([round](NodeId, Tree& tree) { tree.enter(1, round); });
    return until([this] { return released_ == agents_.size(); });
  }

  Cost commit(VersionNumber version, Level level) {
    announced_ = 0;
    each([=](NodeId, Tree& tree) { tree.held(version, level); });
    return until([this] { return announced_ == agents_.size(); });
  }

  Cost fact() {
    delivered_ = 0;
    const auto last = static_cast<NodeId>(agents_.size() - 1);
    BACKSTAY_CHECK(agents_[last]->publish("name", "value").ok());
    drain(last);
    return until([this] { return delivered_ == agents_.size() - 1; });
  }

  // Ticks until all but `node` are one tree, and the most messages of an agent in one of them.
  std::uint32_t die(NodeId node, std::uint64_t& messages_max) {
    agents_[node].reset();
    std::uint32_t ticks = 0;
    while (!is_one_tree()) {
      BACKSTAY_CHECK(++ticks < ticks_max);
      messages_max = std::max(messages_max, tick().messages_max);
    }
    return ticks;
  }
  // It comes back, and all return to where they belong.
  void revive(NodeId node) {
    make(node);
    agents_[node]->start();
    drain(node);
    for (std::uint32_t ticks = 0; !is_one_tree() || !all_at_home(); ++ticks) {
      BACKSTAY_CHECK(ticks < ticks_max);
      tick();
    }
  }

  std::size_t connections_max() const { return connections_max_; }
  double connections_mean() const {
    double sum = 0;
    for (const auto& agent : agents_) sum += static_cast<double>(agent->connections());
    return sum / static_cast<double>(agents_.size());
  }

 private:
  struct Packet {
    NodeId from;
    NodeId to;
    tree::Message message;
  };

  void make(NodeId node) {
    agents_[node] = std::make_unique<Tree>(settings_, tree::Self{node, ++lives_, "host"}, node,
                                           std::vector<tree::Remembered>{});
  }

  void each(const std::function<void(NodeId, Tree&)>& what) {
    std::fill(messages_.begin(), messages_.end(), 0);
    for (NodeId node = 0; node < agents_.size(); ++node) {
      if (!agents_[node]) continue;
      what(node, *agents_[node]);
      drain(node);
    }
  }

  // Rounds until it is done, and then until the network is quiet; only the former are counted.
  Cost until(const std::function<bool()>& done) {
    Cost cost;
    bool is_done = false;
    while (!flying_.empty() || !recording_.empty()) {
      BACKSTAY_CHECK(cost.rounds < rounds_max);
      for (const auto& [node, record] : std::exchange(recording_, {})) {
        agents_[node]->recorded(record.version, record.level);
        drain(node);
      }
      for (const Packet& packet : std::exchange(flying_, {})) {
        if (!agents_[packet.to]) continue;
        ++messages_[packet.to];
        agents_[packet.to]->receive(packet.from, packet.message);
        drain(packet.to);
      }
      if (!is_done) ++cost.rounds;
      is_done = is_done || done();
    }
    cost.messages_max = *std::max_element(messages_.begin(), messages_.end());
    for (const std::uint64_t count : messages_) cost.messages_mean += static_cast<double>(count);
    cost.messages_mean /= static_cast<double>(agents_.size());
    return cost;
  }

  void drain(NodeId node) {
    for (tree::Output& output : agents_[node]->take()) {
      if (auto* sent = std::get_if<tree::Send>(&output)) {
        ++messages_[node];
        flying_.push_back({node, sent->to.node, std::move(sent->message)});
      } else if (const auto* record = std::get_if<tree::Record>(&output)) {
        recording_.emplace_back(node, *record);
      }
      released_ += std::holds_alternative<tree::Released>(output) ? 1 : 0;
      announced_ += std::holds_alternative<tree::Announce>(output) ? 1 : 0;
      delivered_ += std::holds_alternative<tree::Fact>(output) ? 1 : 0;
    }
    connections_max_ = std::max(connections_max_, agents_[node]->connections());
  }

  bool is_one_tree() const {
    const auto alive = std::count_if(agents_.begin(), agents_.end(),
                                     [](const auto& agent) { return agent != nullptr; });
    return std::any_of(agents_.begin(), agents_.end(), [&](const auto& agent) {
      return agent && !agent->links().parent &&
             agent->present().count() == static_cast<std::size_t>(alive);
    });
  }
  bool all_at_home() const {
    return std::all_of(agents_.begin(), agents_.end(),
                       [](const auto& agent) { return agent->at_home(); });
  }

  tree::Settings settings_;
  std::vector<std::unique_ptr<Tree>> agents_;
  std::vector<std::uint64_t> messages_;
  std::vector<Packet> flying_;
  std::vector<std::pair<NodeId, tree::Record>> recording_;
  std::uint64_t lives_ = 0;
  std::size_t released_ = 0;
  std::size_t announced_ = 0;
  std::size_t delivered_ = 0;
  std::size_t connections_max_ = 0;
};

std::size_t allocated() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

nlohmann::ordered_json json_of(const Cost& cost) {
  return {{"rounds", cost.rounds},
          {"messages_mean", cost.messages_mean},
          {"messages_max", cost.messages_max}};
}

}  // namespace

Growth grow(std::uint32_t nodes, std::uint32_t arity) {
  Growth growth;
  growth.nodes = nodes;
  growth.arity = arity;
  for (NodeId node = 0; node < nodes; ++node) {
    const std::size_t depth = tree::place_of(node, nodes, arity).ancestors.size();
    growth.depth = std::max(growth.depth, static_cast<std::uint32_t>(depth));
  }
  const std::size_t before = allocated();
  Cluster cluster(nodes, arity);
  growth.join = cluster.join();
  cluster.tick();
  growth.tick = cluster.tick();
  growth.barrier = cluster.barrier(1);
  growth.commit = cluster.commit(1, Level::local);
  growth.fact = cluster.fact();
  growth.connections_max = cluster.connections_max();
  growth.connections_mean = cluster.connections_mean();
  growth.bytes_per_agent = (allocated() - before) / nodes;
  growth.root_dies_ticks = cluster.die(0, growth.repair_messages_max);
  cluster.revive(0);
  growth.inner_dies_ticks = cluster.die(1, growth.repair_messages_max);
  cluster.revive(1);
  growth.repair_connections_max = cluster.connections_max();
  return growth;
}

std::string json(const Growth& growth) {
  const nlohmann::ordered_json all = {{"nodes", growth.nodes},
                                      {"arity", growth.arity},
                                      {"depth", growth.depth},
                                      {"connections_mean", growth.connections_mean},
                                      {"connections_max", growth.connections_max},
                                      {"bytes_per_agent", growth.bytes_per_agent},
                                      {"join", json_of(growth.join)},
                                      {"tick", json_of(growth.tick)},
                                      {"barrier", json_of(growth.barrier)},
                                      {"commit", json_of(growth.commit)},
                                      {"fact", json_of(growth.fact)},
                                      {"root_dies_ticks", growth.root_dies_ticks},
                                      {"inner_dies_ticks", growth.inner_dies_ticks},
                                      {"repair_connections_max", growth.repair_connections_max},
                                      {"repair_messages_max", growth.repair_messages_max}};
  return all.dump(2);
}

std::string table_head() {
  return "| nodes | depth | connections: mean, max | join: rounds, messages mean, max | tick: "
         "messages "
         "mean, max | barrier: rounds, messages mean, max | commit: rounds, messages mean, max | "
         "fact: "
         "rounds, messages mean, max | root dies: ticks | inner node dies: ticks | repair: "
         "connections "
         "max, messages max | KiB an agent |\n"
         "|---|---|---|---|---|---|---|---|---|---|---|---|";
}

std::string table_row(const Growth& growth) {
  const auto messages = [](const Cost& cost) {
    return fmt::format("{:.1f}, {}", cost.messages_mean, cost.messages_max);
  };
  const auto all = [&](const Cost& cost) {
    return fmt::format("{}, {}", cost.rounds, messages(cost));
  };
  return fmt::format(
      "| {} | {} | {:.1f}, {} | {} | {} | {} | {} | {} | {} | {} | {}, {} | {:.1f} |", growth.nodes,
      growth.depth, growth.connections_mean, growth.connections_max, all(growth.join),
      messages(growth.tick), all(growth.barrier), all(growth.commit), all(growth.fact),
      growth.root_dies_ticks, growth.inner_dies_ticks, growth.repair_connections_max,
      growth.repair_messages_max, static_cast<double>(growth.bytes_per_agent) / 1024);
}

}  // namespace backstay::sim
