// A run's agents in one process under one seed: a network that loses, delays, doubles and reorders
// messages and can be cut in parts; agents that stop, die and come back; disks that keep what was
// persisted, until they are destroyed.
//
// Fault model of the fakes: a message arrives late, several times or never, but unchanged (agents
// authenticate each other and packets are checked below). A record is on the disk some time after
// it was asked for, and the agent hears of it some time after that; a crash may come before,
// between, or after. A destroyed disk is empty. No agent lies.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <vector>

#include "base/random.h"
#include "tree/tree.h"

namespace backstay::sim {

using Time = std::uint64_t;
inline constexpr Time tick_time = 100;

struct Weather {  // of the network
  std::uint32_t loss_percent = 0;
  std::uint32_t double_percent = 0;
  Time delay_max = 20;
  std::uint32_t late_percent = 0;  // messages that take up to late_max
  Time late_max = 1000;
};

// What a node's disk knows of versions.
struct Disk {
  std::map<tree::RunVersion, tree::Remembered> versions;
  std::uint32_t destroyed = 0;  // how often

  void hold(tree::RunVersion version, Level level);
  void record(tree::RunVersion version, Level level);
};

struct Agent {
  std::unique_ptr<tree::Tree> tree;  // none: dead
  std::uint64_t incarnation = 0;
  Disk disk;
  bool stopped = false;  // as by SIGSTOP: messages wait, no ticks
  std::vector<std::function<void()>> waiting;
  std::uint32_t part = 0;  // of the network, where it is cut
};

class Watcher {  // sees everything at the moment it happens
 public:
  virtual ~Watcher() = default;
  virtual void announced(NodeId, tree::RunVersion, Level) {}
  virtual void released(NodeId, std::uint64_t /*barrier*/, std::uint64_t /*round*/) {}
  virtual void delivered(NodeId, const tree::Fact&) {}
  virtual void stepped(NodeId) {}  // after every input
};

class World {
 public:
  World(tree::Settings settings, std::uint64_t seed, Watcher& watcher);

  // Starts the node's agent with its disk as it is.
  void start(NodeId node);
  void kill(NodeId node);
  void destroy_disk(NodeId node) { agents_[node].disk = {{}, agents_[node].disk.destroyed + 1}; }
  void stop(NodeId node) { agents_[node].stopped = true; }
  void go_on(NodeId node);

  // The node's storage has a level: on the disk now; the agent learns it a little later, if it
  // lives.
  void hold(NodeId node, VersionNumber version, Level level);
  // Runs `what` with the agent, if it is alive then.
  void with(NodeId node, Time delay, std::function<void(tree::Tree&)> what);

  void at(Time delay, std::function<void()> what);
  void run_for(Time time);

  Time now() const { return now_; }
  Agent& agent(NodeId node) { return agents_[node]; }
  bool alive(NodeId node) const { return agents_[node].tree != nullptr; }
  std::uint32_t nodes() const { return static_cast<std::uint32_t>(agents_.size()); }
  const tree::Settings& settings() const { return settings_; }
  SplitMix64& random() { return random_; }
  bool chance(std::uint32_t percent) { return random_.below(100) < percent; }
  std::uint64_t messages() const { return messages_; }

  Weather weather;
  // Broken owners of the state machine, to see that the checker notices (sim_test.cc).
  bool says_recorded_too_early = false;
  bool says_held_too_early = false;

 private:
  struct Event {
    Time at;
    std::uint64_t order;
    std::function<void()> what;
    bool operator<(const Event& other) const {
      return std::tie(at, order) > std::tie(other.at, other.order);
    }
  };
  void tick(NodeId node, std::uint64_t incarnation);
  // Unless the agent has died since; later, if it is stopped.
  void if_alive(NodeId node, std::uint64_t incarnation,
                const std::function<void(tree::Tree&)>& what);
  void drain(NodeId node);
  void carry(NodeId from, NodeId to, const tree::Message& message);
  void persist(NodeId node, const tree::Record& record);

  tree::Settings settings_;
  SplitMix64 random_;
  Watcher& watcher_;
  std::vector<Agent> agents_;
  std::priority_queue<Event> events_;
  Time now_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t messages_ = 0;
};

}  // namespace backstay::sim
