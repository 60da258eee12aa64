// Which versions of a job are decided and announced: between its store, which seals and records,
// and the memberships of its runs, which count (docs/protocol/tree.md, "Commit of a level").
//
//   store: VersionSealed      -> membership.held(local)
//   fleet: record(v, level)   -> store: RecordVersion, where this node has a part of v
//   store: VersionRecorded    -> membership.recorded()
//   fleet: announced(v, ..)   -> the table of versions: from now on the level may be reported
//
// A run of one node takes the same steps; the membership of one answers at once. Main loop's
// thread.
//
// A version may be sealed and still in doubt when its run's ranks have died and a new run begins:
// its membership stays until it is decided, so that a restart that is quick finds it; settled()
// says whether there is something to wait for. A version of one node may even be written a second
// time in a later run: then a membership of one is made for it.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "agent/disk/store.h"
#include "agent/group/run_membership.h"
#include "agent/version/job_state.h"

namespace backstay::agent {

class CommitCoordinator final : public MembershipOwner {
 public:
  // `files`: gets what other agents of the present run say about files. `events`: gets what
  // becomes known of the run, and the ticks of runs before it too.
  CommitCoordinator(JobState& state, PeerEvents& files, RunEvents& events)
      : state_(state), files_(files), events_(events) {}

  // A run begins; the fleets of those before stay while they have versions to decide. Errors: of
  // the network (port_in_use, config, permission, io), invalid.
  Status begin_run(const wire::Hello& hello);
  // Of the present run; null before the first.
  RunMembership* run_membership() { return present_.get(); }
  const RunMembership* run_membership() const { return present_.get(); }
  Status know(const wire::Neighbours& neighbours);

  void on(const VersionSealed& event);
  void on(const VersionRecorded& event);
  void on(const RecordFailed& event);

  // This node's part is protected. A version of one node may be of an earlier run.
  void held_protected(VersionNumber version);

  // Sealed versions of the present run that are not decided.
  bool in_doubt() const;
  // Nothing to wait for before another run begins: no captured version of this one may still become
  // local. Where nodes are lost it cannot; that is not waited for longer than `patience`.
  bool settled() const;
  // When settled() may change by time alone; 0: not.
  std::uint64_t settles_at_ns() const;
  // A new run has come. Patience lasts from then, and from when this node has sealed its last part.
  void hurry();
  // What an agent that ends waits for: an in doubt version that the other nodes may still decide.
  // Where a member is lost, or cannot write its part, they do not. What is left in doubt counts
  // for the next run only where a node has its record.
  bool may_be_decided() const;

  void progress();
  bool has_news() const;

  // MembershipOwner
  void record(tree::RunVersion version, Level level) override;
  void announced(tree::RunVersion version, Level level) override;
  void membership(const tree::Membership& change) override;
  void released(std::uint64_t barrier, std::uint64_t round) override;
  void reached(NodeId member) override { events_.reached(member); }
  void fact(const tree::Fact& fact) override { events_.fact(fact); }
  void ticked() override;
  PeerEvents& files() override { return files_; }

 private:
  static constexpr double patience_s = 5;
  static constexpr double patience_in_losses = 3;   // each as long as it takes to notice one
  static constexpr std::size_t said_again_max = 8;  // of each kind: much less than the tree keeps
  std::vector<tree::Remembered> remembered(const wire::Hello& hello) const;
  bool has_in_doubt_of(RunId run) const;
  bool awaits_protected(RunId run) const;
  bool out_of_patience() const;
  std::uint64_t patience_ends_ns() const;
  bool is_wanted(const RunMembership& run_membership) const;
  void drop_unwanted();
  RunMembership* membership_of(const format::CommitRecord& record);
  std::vector<RunMembership*> run_memberships() const;
  bool has_part_of(tree::RunVersion version) const;
  void order_record(VersionNumber version, Level level);
  void record_written(const MemoryVersion& version) const;
  void say_again();

  JobState& state_;
  PeerEvents& files_;
  RunEvents& events_;
  std::unique_ptr<RunMembership> present_;
  std::list<std::unique_ptr<RunMembership>>
      earlier_;  // of runs before, while they have versions to decide
  std::uint64_t hurried_ns_ = 0;
  std::uint64_t sealed_ns_ = 0;
};

}  // namespace backstay::agent
