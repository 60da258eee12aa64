// Level protected by replicas (docs/protocol/peers.md, "Keeping"): sees to it that each file of a
// node that this agent has to look after lies on as many other nodes as are wanted, and keeps
// copies for others (replica_receiver.h).
//
// A file is looked after by the first living of its holders: its owner, and when that is lost the
// holder with the lowest number. Everybody who has it knows who else has. Copies are asked for in
// the order of protect::keepers_in_order(); who refuses or is lost is replaced by the next. When
// no keeper is left the level is missing, with a reason, until the membership changes or half a
// minute has passed.
//
// Main loop's thread; nothing blocks, and nothing that goes wrong here stops a program. Lives as
// long as the run that it is for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "agent/redundancy/file_events.h"
#include "agent/redundancy/replica_receiver.h"
#include "agent/version/blockers.h"
#include "agent/version/held_files.h"

namespace backstay::agent {

struct ReplicatorSettings {
  std::uint32_t replicas = 1;  // beside a node's own copy
  // One a member, "" a domain of its own; none at all: no domains.
  std::vector<std::string> domains;
  std::uint64_t bytes_per_s = 0;  // that this node pulls to keep them; 0: no limit
};

// Errors: few_nodes (so many replicas are not possible with that many nodes; says what to do). One
// node needs none.
Status check_replicas(std::uint32_t replicas, std::uint32_t nodes);

class Replicator final {
 public:
  // Preconditions: the run of `world.state` has begun; check_replicas(). `files`: what is on this
  // node's disk.
  Replicator(ReplicatorWorld world, const HeldFiles& files, ReplicatorSettings settings,
             FileEvents& events);

  // What this node had when its agent began: files of this run are looked after as if it had seen
  // them come.
  void listed(std::span<const HeldFile> files);
  // This node's file of the version is safe on its own disk. Protected in the order of the
  // versions, two at once.
  void sealed(const HeldFile& file);
  // The commit record of a version stands on this node: copies that are made from now on get it
  // too.
  void recorded(const format::CommitRecord& record);
  // The version is protected on all nodes: its files are looked after also when their owners are
  // lost.
  void protected_everywhere(VersionNumber version);
  // A file of a version of an earlier run, which the program goes on from: it shall have as many
  // copies as those of this run, as what the nodes of that run had may be gone with them. `others`:
  // agents of this run that have it.
  void inherited(const HeldFile& file, std::set<NodeId> others);
  // The version has gone from this node's disk, or goes.
  void removed(VersionNumber version);

  // This node's file is damaged: the one that `source` has takes its place.
  void repair(const HeldFile& file, NodeId source);

  void membership(std::span<const NodeId> lost, std::span<const NodeId> back);
  void on(NodeId from, const wire::peer::Keep& keep);
  void on(NodeId from, const wire::peer::Kept& kept);
  void lost(NodeId peer, const Error& why);

  // Does what is to be done next: after whatever was told to it, and at the time that it answers
  // (base/clock.h).
  std::uint64_t pump();

  // Why this node's file of the version has not all its copies, if that was given up for now.
  std::optional<Error> blockers(VersionNumber version) const;
  // The same for all versions of the present run.
  std::vector<Blocker> blockers() const;

 private:
  struct Duty {                // a file on this node's disk
    wire::peer::Keep what;     // but for its holders
    std::set<NodeId> holders;  // others that have it
    std::set<NodeId> asked;    // not answered yet
    std::map<NodeId, Error> refused;
    std::map<NodeId, std::set<NodeId>> told;  // what we said to each about the holders
    std::optional<Error> blocker;
    std::uint64_t not_before_ns = 0;  // after it was given up
    std::uint64_t lost_ns = 0;        // since when copies are missing that there were; 0: none are
    bool complete = false;            // once had all its copies
    bool inherited = false;           // of an earlier run, whose nodes had other numbers
    bool exhausted = false;           // no keeper is left to ask
    VersionPin pin;                   // while copies are asked for
  };
  using Entry = std::pair<const FileOf, Duty>;

  bool is_own(const FileOf& file) const;
  bool is_ours(const Entry& entry) const;
  bool is_wanted(const Entry& entry) const;
  void ask(Entry& entry);
  void send_keep(Entry& entry, NodeId to);
  void send_needed(const FileOf& file, NodeId to);
  std::set<NodeId> holders_of(const FileOf& file, NodeId to) const;
  bool is_announced(const FileOf& file) const;
  void refused(Entry& entry, NodeId keeper, const Error& error);
  void complete(Entry& entry);
  void tell_holders(Entry& entry);
  void give_up(Entry& entry);
  void lose(Entry& entry, NodeId node, const Error& why);
  void begin_again(Entry& entry);
  void have(const wire::peer::Keep& keep, const HeldFile& held);
  std::vector<NodeId> candidates(const Entry& entry) const;
  void tell_relaxation() const;

  const ReplicatorWorld world_;
  const HeldFiles& held_;
  const ReplicatorSettings settings_;
  FileEvents& events_;
  const NodeId self_;
  std::map<FileOf, Duty> duties_;  // older versions first
  std::set<VersionNumber> protected_;
  std::set<NodeId> lost_;
  ReplicaReceiver replica_receiver_;
};

}  // namespace backstay::agent
