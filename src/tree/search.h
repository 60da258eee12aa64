// The nodes that a node without a parent asks, in order.
//
// First those that a refusal named; then its home (the parent of the undamaged tree), the ancestors
// it last had, nearest first, and those of the undamaged tree. All of these may be dead, so two
// more follow that lead to the rest sooner or later: the lower numbers in turn, so that the lowest
// living node is found, and a random one, which knows where the others are. Between rounds it waits
// a random time that doubles, so that nodes that lost the same parent do not keep coming at the
// same moment.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "tree/shape.h"
#include "wire/tree_message.h"

namespace backstay::tree {

using wire::tree::Peer;

class Search {
 public:
  static constexpr std::uint32_t wait_ticks_max = 16;

  Search(NodeId self, std::uint32_t nodes, const Place& place,
         std::function<std::string(NodeId)> address_of, SplitMix64& random);

  // Starts a new search, at once. `ancestors`: the last ones, root first. `silent`: one that is
  // probably dead, asked last.
  void begin(std::vector<NodeId> ancestors, std::optional<NodeId> silent = std::nullopt);
  // Ask this one before all others.
  void hint(Peer peer);
  // The node to ask now; nullopt if the search has to wait or there is no node to ask.
  std::optional<Peer> next();
  void tick();

 private:
  void fill(std::optional<NodeId> silent = std::nullopt);
  void put(NodeId node);

  NodeId self_;
  std::uint32_t nodes_;
  const Place& place_;
  std::function<std::string(NodeId)> address_of_;
  SplitMix64& random_;
  std::vector<NodeId> ancestors_;
  std::deque<Peer> hints_;
  std::deque<Peer> round_;
  NodeId lower_ = 0;  // of the numbers below ours, the next in turn
  std::uint32_t rounds_ = 0;
  std::uint32_t wait_ticks_ = 0;
};

}  // namespace backstay::tree
