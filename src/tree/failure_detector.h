// The members that this agent believes to be lost. The root decides it from the nodes that are
// present in its tree; every other agent takes its parent's list.
//
// Suspicion: a member that is missing is not lost yet. Its subtree is missing with it until the
// children have found new parents, and it may be back at once. A member is lost only if it was
// missing for a whole period of grace (so for one to two of them). A member that is present again
// is no longer lost, at once.
//
// Used to place copies on other nodes. No commit depends on it: a wrong belief costs work, not
// data.
#pragma once

#include <cstdint>

#include "tree/floors.h"
#include "tree/node_set.h"

namespace backstay::tree {

class FailureDetector {
 public:
  FailureDetector(std::uint32_t nodes, std::uint32_t grace_ticks, Changes& changes)
      : members_(NodeSet::range(0, nodes)),
        grace_ticks_(grace_ticks),
        changes_(changes),
        changed_(changes.next()) {}

  // At a root, once a tick and whenever `present` has changed.
  void seen(const NodeSet& present);
  void tick_at_root();
  // Begins the first period of a new root: the nodes below the old root have all of it to find
  // their way here.
  void become_root();
  void parent_says(NodeSet lost);

  const NodeSet& lost() const { return lost_; }
  // Never 0: a new child, which may have believed otherwise, also learns that no member is lost.
  std::uint64_t changed() const { return changed_; }

 private:
  void set(NodeSet lost);

  NodeSet members_;
  std::uint32_t grace_ticks_;
  Changes& changes_;
  std::uint32_t ticks_ = 0;
  NodeSet seen_;  // in this period of grace
  NodeSet lost_;
  std::uint64_t changed_;
};

}  // namespace backstay::tree
