// Lost files of nodes that are made again out of what their parity group has left
// (docs/protocol/peers.md, "Rebuilding"): for the agent that needs one for a restart, by an agent
// that has parity of the group. It keeps the file afterwards like a copy of another node's, checked
// chunk by chunk against the manifest that came with the parity.
//
// Main loop's thread; nothing blocks. It may be destroyed at any time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "agent/group/pending_requests.h"
#include "agent/redundancy/degraded_reader.h"
#include "agent/redundancy/file_events.h"
#include "agent/redundancy/object_directory.h"
#include "agent/redundancy/replica_receiver.h"

namespace backstay::agent {

class Rebuilder {
 public:
  // Whose file the agent that was asked has now.
  using Done = std::function<void(const Result<NodeId>&)>;
  // All must live longer.
  Rebuilder(ReplicatorWorld world, StripeCoder& stripe_coder, ObjectDirectory& directory,
            FileEvents& events);

  // Asks an agent that has parity of the group for the file in which the rank's object is. `done`
  // is called once, later. Errors: lost (more is gone than the parity makes up for), agent_lost,
  // and what else goes wrong there.
  void ask(NodeId agent, VersionOfRun version, Rank rank, Done done);

  void on(NodeId from, const wire::peer::Rebuild& rebuild);
  void on(NodeId from, const wire::peer::Rebuilt& rebuilt);
  // How a replica receiver of ours has ended. False: it was none of ours.
  bool on(NodeId from, const wire::peer::Kept& kept);
  void lost(NodeId peer, const Error& why);
  // The version has gone from this node's disk, or goes.
  void removed(VersionNumber version);
  std::uint64_t pump();
  std::size_t under_way() const { return work_.size(); }

 private:
  struct Asker {
    NodeId agent = 0;
    std::uint64_t ticket = 0;
    Rank rank = 0;
  };
  struct Search {  // for one file: who has what of the group
    LivingGroup group;
    std::uint32_t lost = 0;
    std::size_t lookups = 0;            // that are not answered
    std::optional<Error> unknown = {};  // a lookup failed: there may be more than was found
  };
  struct Work {  // on one file
    std::vector<Asker> askers;
    Search search;
    std::optional<std::vector<FileOf>> needs = {};  // made before it; none: not known yet
    std::unique_ptr<DegradedReader> reader;
    std::unique_ptr<ReplicaReceiver> keeper;
    std::optional<Status> ended;
    bool removed = false;
  };

  void got_parity(const FileOf& parity, const Result<Buffer>& bytes);
  void begin(const FileOf& file, Search search, const Asker& asker);
  void look_up(const FileOf& file, std::uint32_t member, bool parity);
  void make_needed(const FileOf& file, Work& work);
  void make(const FileOf& file, Work& work);
  static Status outcome(const Work& work);
  void answer(const Asker& asker, const Status& status, NodeId node);

  const ReplicatorWorld world_;
  StripeCoder& stripe_coder_;
  ObjectDirectory& directory_;
  FileEvents& events_;
  PendingRequests<Done> asked_;
  std::map<FileOf, std::vector<Asker>> reading_;  // by the parity whose manifest is read
  std::map<FileOf, Work> work_;
  CallbackGuard callback_guard_;
};

}  // namespace backstay::agent
