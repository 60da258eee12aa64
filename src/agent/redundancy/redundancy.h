// The files of a run's agents as this one takes part in them (docs/protocol/peers.md): it reads
// others' and lets them read, keeps copies and has its own kept, knows who has what. One for each
// run on several nodes.
//
// From begin() on: the peer file thread lists what this node holds; that is told to the registrars;
// when all have answered, the tree's barrier 1 is to be entered; when that is released, restarts
// can be served. Main loop's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "agent/disk/peer_file_parts.h"
#include "agent/group/callback_guard.h"
#include "agent/group/remote_files.h"
#include "agent/redundancy/object_directory.h"
#include "agent/redundancy/parity_encoder.h"
#include "agent/redundancy/pool_first.h"
#include "agent/redundancy/rebuilder.h"
#include "agent/redundancy/replicator.h"
#include "agent/redundancy/retention_pin.h"
#include "agent/redundancy/transfers.h"
#include "agent/version/job_state.h"
#include "tree/node_set.h"

namespace backstay::agent {

// Which part of this room takes a message about files. Of a message that may concern two of them
// the first one says whether it was its own.
struct FileMessages {
  Transfers& transfers;
  ObjectDirectory& directory;
  Replicator& replicator;
  Rebuilder& rebuilder;
  ParityEncoder* parity_encoder;  // null: no parity is made

  void on(NodeId from, const wire::peer::Get& get) const {
    const bool is_block = parity_encoder != nullptr && parity_encoder->on(from, get);
    if (!is_block) transfers.on(from, get);
  }
  void on(NodeId from, const wire::peer::No& no) const {
    if (!directory.on(from, no)) transfers.on(from, no);
  }
  void on(NodeId from, const wire::peer::Keep& keep) const { replicator.on(from, keep); }
  void on(NodeId from, const wire::peer::Kept& kept) const {
    if (!rebuilder.on(from, kept)) replicator.on(from, kept);
  }
  void on(NodeId from, const wire::peer::Holds& holds) const { directory.on(from, holds); }
  void on(NodeId from, const wire::peer::HoldsSeen& seen) const { directory.on(from, seen); }
  void on(NodeId from, const wire::peer::Lookup& lookup) const { directory.on(from, lookup); }
  void on(NodeId from, const wire::peer::Holders& holders) const { directory.on(from, holders); }
  void on(NodeId from, const wire::peer::Rebuild& rebuild) const { rebuilder.on(from, rebuild); }
  void on(NodeId from, const wire::peer::Rebuilt& rebuilt) const { rebuilder.on(from, rebuilt); }
};

// What becomes known on this node of the run's files. Of the files that it keeps for others it
// reports replicas, not parity.
class RedundancyEvents : public FileEvents {
 public:
  // What this node holds is known, and told or on its way: `around` may be used.
  virtual void listed(RemoteFiles& around) = 0;
  // All registrars in reach know it: time for directory_barrier.
  virtual void directory_complete() = 0;
  // Whether the others have been told that this node's part of it is protected.
  virtual bool has_told(VersionNumber version) const = 0;
  // A file was found damaged at that agent.
  virtual void damaged(NodeId holder, const FileOf& file, const Error& why) = 0;
};

class Redundancy final : private FileEvents, private RemoteFiles {
 public:
  static constexpr std::uint64_t directory_barrier = 1;

  // The run of `state` has begun. All must live longer. With `parity` there are no replicas.
  Redundancy(JobState& state, Peers& peers, PeerFileParts parts, ReplicatorSettings settings,
             std::optional<ParitySettings> parity, RedundancyEvents& events);

  void begin();
  // Everybody has entered directory_barrier.
  void open() { directory_.open(); }

  // What happens to versions on this node.
  void sealed(const HeldFile& file);
  void recorded(const format::CommitRecord& record);
  void protected_everywhere(VersionNumber version);
  void removed(VersionNumber version);
  // The program goes on from it. What is here of it is protected again, where an earlier run wrote
  // it.
  void brought_back(VersionOfRun version);
  // Copies or parity are wanted at all.
  bool protects() const { return protects_; }

  void membership(const tree::NodeSet& lost, const tree::NodeSet& back);
  const HeldFiles& held() const { return directory_.held(); }
  void reached(NodeId member) { directory_.back(member); }
  // Why files of this node have not all their copies, where that was given up for now.
  std::vector<Blocker> blockers() const;
  // Does what is to be done next; answers when it wants to be called again (base/clock.h).
  std::uint64_t pump();

  // What other agents say (agent/job/job_around.cc has the table).
  FileMessages messages();
  void on(NodeId from, const wire::peer::Doubt& doubt);
  void offered(NodeId from, std::uint64_t ticket, std::uint64_t bytes, OfferFrom offer);
  void lost(NodeId peer, const Error& why);

 private:
  void listed(Result<std::vector<HeldFile>> files);
  void hold(const HeldFile& file);
  std::optional<Error> lacks_parity(VersionNumber version) const;
  void tell_encoded();
  void inherit(const FileOf& file, const std::vector<wire::peer::Holder>& holders);
  void doubt(NodeId holder, const FileOf& file);
  void repair(const FileOf& file);
  bool repair_from(const FileOf& file, const std::vector<wire::peer::Holder>& holders);

  // FileEvents
  void protected_here(VersionNumber version) override;
  void kept(const HeldFile& file) override;
  // RemoteFiles
  ObjectLookup& directory() override { return directory_; }
  FileReader& files() override { return transfers_; }
  bool may_be_needed(const FileOf& file) const override;
  void damaged(NodeId holder, const FileOf& file, const Error& why) override;
  void rebuild(NodeId agent, VersionOfRun version, Rank rank, Rebuilt done) override {
    rebuilder_.ask(agent, version, rank, std::move(done));
  }

  JobState& state_;
  Peers& peers_;
  const PeerFileParts parts_;
  RedundancyEvents& events_;
  PoolFirst pool_first_;
  Transfers transfers_;
  ObjectDirectory directory_;
  const bool protects_;
  Replicator replicator_;
  StripeCoder stripe_coder_;
  std::optional<ParityEncoder> parity_encoder_;
  RetentionPin retention_pin_;
  Rebuilder rebuilder_;
  bool complete_told_ = false;
  bool listed_ = false;
  std::set<VersionNumber> gone_;  // while the list was on its way
  std::set<FileOf> doubted_;      // of ours, in this run
  std::set<FileOf> repaired_;     // under way
  // This node has its parity of them, and not of all that their groups need.
  std::set<VersionNumber> encoded_;
  CallbackGuard callback_guard_;
};

}  // namespace backstay::agent
