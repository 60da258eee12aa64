// Publish and subscribe: small facts that every agent gets.
//
// A fact belongs to the node that published it; of two with the same node and name the later one
// counts. Each agent keeps all facts in a log, in the order in which it learned them; one that is
// replaced moves to the end. To each neighbour in the tree an agent sends its log from the place up
// to which the neighbour has confirmed it: facts cross every link of the tree once, up and down,
// even if messages are lost, and a new neighbour gets all.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.h"
#include "wire/tree_message.h"

namespace backstay::tree {

using wire::tree::Fact;
using wire::tree::LinkId;

class Facts {
 public:
  // Each name has room of its own on every agent, for the facts of all nodes together: thousands of
  // facts under one name leave the room of the other names free.
  static constexpr std::size_t names_max = 16;
  static constexpr std::size_t room_bytes_max = 8U << 20U;
  static constexpr std::size_t fact_bytes = 256;  // beside its name and value
  static constexpr std::size_t name_bytes_max = 64;
  static constexpr std::size_t value_bytes_max = 1024;
  static constexpr std::size_t batch_facts_max = 32;  // a message of them stays below 64 KiB

  // Errors: too_large (name, value, no room for it, too many names), invalid (empty, a zero byte).
  Status publish(const Fact& fact);

  // A fact that came over a link. True if it is new. A fact that finds no room, or is larger than
  // allowed, is neither kept nor passed on.
  bool learn(const Fact& fact, const LinkId& from);

  // How far the log goes.
  std::uint64_t end() const { return end_; }
  // The next part of the log after the place `after`, without the facts that came over this very
  // link (another incarnation of the neighbour may have forgotten its facts).
  wire::tree::Facts after(std::uint64_t after, const LinkId& link) const;

  // nullptr: not known.
  const Fact* find(NodeId node, const std::string& name) const;

 private:
  using Name = std::pair<NodeId, std::string>;
  struct Known {
    Fact fact;
    LinkId from;
    std::uint64_t place = 0;
  };
  bool has_room(const Fact& fact) const;
  void put(const Fact& fact, const LinkId& from);

  std::map<Name, Known> known_;
  std::map<std::uint64_t, Name> log_;
  std::map<std::string, std::size_t> room_used_;  // bytes, by name
  std::uint64_t end_ = 0;
};

}  // namespace backstay::tree
