// What keeps versions from levels, as this node knows it: the part of the table of versions
// (version_table.h) that says why. why_not.h reads it, and gives the answers.
//
// It decides nothing: who waits for a level is answered with the reason at once, not at the end of
// the wait. Pure. Main loop's thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "tree/node_set.h"

namespace backstay::agent {

// One node keeps one version from one level.
struct Blocker {
  VersionNumber version = 0;
  Level level = Level::none;
  Code code = Code::ok;
  std::string why;
  bool operator==(const Blocker&) const = default;
};

struct NodeBlockers {
  std::string host;  // for people
  std::vector<Blocker> blockers;
  bool operator==(const NodeBlockers&) const = default;
};

// Events of the store and the drain (agent/disk/store.h).
struct VersionFailed {  // nothing of it is left on the tier, nothing of it is in flight
  VersionNumber version = 0;
  Error error{Code::internal, ""};
};
struct CopyFailed {  // nothing of it is left at the destination, or it is garbage
  VersionNumber version = 0;
  Error error{Code::internal, ""};
  bool source_is_damaged = false;  // the version on the node's disk, found twice
};

class LevelBlockers {
 public:
  // --- of whichever node of the run ---
  // All that the node keeps from a level now, in place of what it said before.
  void blocked(NodeId node, NodeBlockers all);
  // No version gets further for all while one of these is so: a member that cannot be spoken with
  // and will not be by itself (agent/group/peers.h; nullopt: it can be), and members that are lost.
  void cut_off(NodeId node, std::optional<Error> why);
  void lost(const tree::NodeSet& nodes, std::uint64_t now_ns);

  // --- of this node ---
  // The version could not be written to this node's disk.
  void not_written(VersionFailed failed);
  // The last copy to shared storage failed. What is older is not copied any more.
  void not_copied(CopyFailed failed) { not_copied_ = std::move(failed); }
  // Shared storage could not be listed.
  void shared_unreadable(Error why) { shared_unreadable_ = std::move(why); }
  // Another directory is used, or another run uses it.
  void begin_copies();

  // --- what is known ---
  struct OfNode {
    NodeId node = 0;
    std::string host;
    Blocker blocker;
  };
  // Of those that keep the version, which has level `has`, from `wanted`: the one of the lowest
  // level.
  std::optional<OfNode> nearest(VersionNumber version, Level has, Level wanted) const;
  // Of the newest version that this node keeps from a level; null: of none.
  const Blocker* newest(NodeId node) const;
  const std::map<NodeId, Error>& members_cut_off() const { return cut_off_; }
  const tree::NodeSet& members_lost() const { return lost_; }
  // When members were lost, or came back, last; 0: never. A blocker is not the last word soon after
  // it: a lost member may come back, and one that has come back needs time to make up for what it
  // missed.
  std::uint64_t lost_changed_ns() const { return lost_changed_ns_; }
  // The last version of the run that could not be written, until one reaches this node's disk.
  const std::optional<VersionFailed>& last_not_written() const { return not_written_; }
  std::uint64_t write_outages() const { return write_outages_; }  // how often that began
  const std::optional<CopyFailed>& last_not_copied() const { return not_copied_; }
  const std::optional<Error>& why_shared_unreadable() const { return shared_unreadable_; }

 protected:
  // Another run begins.
  void forget_blockers();
  // A version has reached this node's disk.
  void written() { not_written_.reset(); }
  struct Changed {
    std::set<VersionNumber> versions;
    bool all = false;
  };
  Changed take_changed();

 private:
  std::map<NodeId, NodeBlockers> nodes_;
  std::map<NodeId, Error> cut_off_;
  tree::NodeSet lost_;
  std::uint64_t lost_changed_ns_ = 0;
  std::optional<VersionFailed> not_written_;
  std::uint64_t write_outages_ = 0;
  std::optional<CopyFailed> not_copied_;
  std::optional<Error> shared_unreadable_;
  Changed changed_;
};

}  // namespace backstay::agent
