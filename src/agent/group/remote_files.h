// The other agents of a run as a restore needs them. They live as long as the run.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "agent/group/peers.h"
#include "agent/version/held_files.h"

namespace backstay::agent {

// Who has which objects (agent/redundancy/object_directory.h is the real one).
class ObjectLookup {
 public:
  // The best first. Errors: agent_lost (the registrar has gone, or who had the object). Empty:
  // there is no holder.
  using Found = std::function<void(Result<std::vector<wire::peer::Holder>>)>;
  virtual ~ObjectLookup() = default;
  // What is on this node's disk.
  virtual const HeldFiles& held() const = 0;
  // `found` is called once, later. `parity`: that of the rank's group, by all who have any, instead
  // of the object.
  virtual void lookup(VersionOfRun version, Rank rank, Found found, bool parity) = 0;
  void lookup(VersionOfRun version, Rank rank, Found found) {
    lookup(version, rank, std::move(found), /*parity=*/false);
  }
};

class RemoteFiles {
 public:
  virtual ~RemoteFiles() = default;
  virtual ObjectLookup& directory() = 0;
  virtual FileReader& files() = 0;
  // Whether a version of this run that needs this file of an earlier one could reach the levels
  // that the run is to reach.
  virtual bool may_be_needed(const FileOf& file) const = 0;
  // A file was found damaged at that holder, which may be ourselves.
  virtual void damaged(NodeId holder, const FileOf& file, const Error& why) = 0;
  // The file with that rank's object, made again by an agent that has parity of its group: whose
  // file that agent has then.
  using Rebuilt = std::function<void(const Result<NodeId>&)>;
  virtual void rebuild(NodeId agent, VersionOfRun version, Rank rank, Rebuilt done) = 0;
};

}  // namespace backstay::agent
