// Who copies which file of one version to the durable directory, and when (docs/protocol/drain.md).
// Arithmetic only.
//
// At most `at_once` agents have a turn, each one turn. A file is copied by the agent whose number
// it has, if that has it; else by the one of those who have it that had the fewest turns.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>

#include "base/ids.h"

namespace backstay::agent {

class DrainSchedule {
 public:
  struct Turn {
    NodeId agent = 0;
    NodeId file = 0;  // of which node of the version's run
    bool operator==(const Turn&) const = default;
  };

  // `at_once`: 0: all.
  DrainSchedule(std::uint32_t files, std::uint32_t at_once);

  // Before the first next(): the agent has these files.
  void has(NodeId agent, std::span<const NodeId> files);
  // Gives a turn, if there is one to give now.
  std::optional<Turn> next();
  void done(const Turn& turn);
  // It could not; another member may.
  void failed(const Turn& turn);
  // It has no turn any more, and gets none.
  void lost(NodeId agent);

  // A file that no member is left for.
  std::optional<NodeId> missing() const;
  bool complete() const { return done_ == files_.size(); }
  std::size_t given() const { return busy_.size(); }

 private:
  struct File {
    std::set<NodeId> holders;
    bool done = false;
  };
  std::optional<NodeId> agent_for(NodeId file) const;
  void take_back(const Turn& turn);

  const std::uint32_t at_once_;
  std::map<NodeId, File> files_;
  std::set<NodeId> waiting_;  // files
  std::size_t done_ = 0;
  std::map<NodeId, NodeId> busy_;        // agent -> file
  std::map<NodeId, std::uint64_t> had_;  // turns
};

}  // namespace backstay::agent
