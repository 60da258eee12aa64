// The versions that retention leaves alone until they are protected on all nodes: the newest whose
// part is protected here, and the pinned one, where versions come faster than copies of them can
// be made. Without it each node would finish another one, and remove those that the others finish:
// none would ever be protected, however long the job runs.
//
// All nodes must choose the same one, and each knows a little more or less than the others of what
// has become local. So the choice is by a draw that depends on the version's number alone: the
// largest draw among the local versions newer than the newest protected one (as in min-wise
// hashing: Broder, 1997). Nodes that see almost the same versions agree, and of n versions a newer
// one takes the place of the pinned one with probability 1/n only: so it is given, sooner or
// later, as much time as a copy takes.
//
// Main loop's thread. Lives as long as the run that it is for.
#pragma once

#include <functional>

#include "agent/version/version_table.h"

namespace backstay::agent {

// Of a run's versions on a node's disk; 0: none.
VersionNumber retention_pin(const VersionTable::Rows& rows, RunId run);

class RetentionPin {
 public:
  // Whether the others have been told that this node's part of the version is protected.
  using HasTold = std::function<bool(VersionNumber)>;

  // Pins versions of the run in the table.
  RetentionPin(VersionTable& versions, RunId run, HasTold has_told)
      : versions_(versions), run_(run), has_told_(std::move(has_told)) {}

  // Call it after anything that may have changed the versions on this node's disk or their levels,
  // and what the others have been told.
  void choose();
  // This node's part is protected. The newest such version is held until it is protected on all
  // nodes: removing it earlier would waste the other nodes' replicas. Until the others have been
  // told of it, the newest of which they have been told is held as well.
  void protected_here(VersionNumber version);

 private:
  void pin(VersionPin& held, VersionNumber version);

  VersionTable& versions_;
  const RunId run_;
  const HasTold has_told_;
  VersionPin retention_pin_;
  VersionPin protected_here_;
  VersionPin told_;  // older than that one, of which the others have not been told
};

}  // namespace backstay::agent
