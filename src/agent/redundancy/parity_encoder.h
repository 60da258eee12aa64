// Level protected by parity (docs/protocol/parity.md): the parity that this node keeps of its
// group's segments. Once a version is recorded, every node of its run has its part on its disk;
// then each reads the data blocks of one stripe from the others of its group, slice by slice, and
// makes all m blocks of parity of it: it keeps the first and hands out the others, which their
// members ask for. Who is not handed a block makes it by itself.
//
// One version at a time, the older first. The rate limits what is read. Retention leaves the
// version alone meanwhile. What fails is taken away, said with a reason, and tried again when the
// membership changes, and every half a minute.
//
// Main loop's thread; nothing blocks. It may be destroyed at any time. Lives as long as the run
// that it is for.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "agent/redundancy/file_events.h"
#include "agent/redundancy/parity_sender.h"
#include "agent/redundancy/replica_receiver.h"
#include "agent/redundancy/stripe_coder.h"
#include "agent/version/blockers.h"
#include "base/parity_shape.h"
#include "format/parity_manifest.h"
#include "protect/stripes.h"

namespace backstay::agent {

struct ParitySettings {
  ParityShape shape;                 // as configured
  std::vector<std::string> domains;  // one a member, "" a domain of its own
  std::uint64_t bytes_per_s = 0;     // that this node pulls; 0: no limit
};

// "k,m" for so many nodes. Errors: config (no such parity), few_nodes (says what to do),
// unsupported (built without ISA-L).
Result<ParityShape> check_parity(const std::string& text, std::uint32_t nodes);

class ParityEncoder {
 public:
  // Preconditions: the run of `world.state` has begun; check_parity().
  ParityEncoder(ReplicatorWorld world, StripeCoder& stripe_coder, const ParitySettings& settings,
                FileEvents& events);
  ~ParityEncoder();
  ParityEncoder(const ParityEncoder&) = delete;
  ParityEncoder& operator=(const ParityEncoder&) = delete;

  // What this node had when its agent began: versions of this run that an earlier agent of the run
  // left without level protected are worked on as those that are recorded later; parity that is
  // there already is synced and told.
  void listed(std::span<const HeldFile> files);
  // The commit record of a version stands on this node.
  void recorded(const format::CommitRecord& record);
  // The version has gone from this node's disk, or goes.
  void removed(VersionNumber version);
  void membership(std::span<const NodeId> lost, std::span<const NodeId> back);
  // True: it was a `get` for a block of parity that is made here for who asks.
  bool on(NodeId from, const wire::peer::Get& get);
  void lost(NodeId peer) { parity_sender_.lost(peer); }

  // Does what is to be done next; answers when it wants to be called again (base/clock.h).
  std::uint64_t pump();

  // Of what it makes.
  store::ParityOf protection() const { return {group_, shape_.parity}; }
  // Why this node's parity of a version is not there, if that was given up for now.
  std::vector<Blocker> blockers() const;

 private:
  enum class Step { waiting, manifests, opening, encoding, sealing, done };
  struct Slice {  // of a block of parity
    std::uint32_t block = 0;
    std::uint64_t offset = 0;  // in the block
    std::uint64_t bytes = 0;
  };
  // Slices that are still to be begun, of some blocks side by side. Counted, not listed: how many
  // there are is what a member says of itself.
  struct Line {
    std::uint32_t first_block = 0;
    std::uint32_t blocks = 1;
    std::uint64_t count = 0;
    std::uint64_t next = 0;
    std::deque<Slice> again;  // those that were begun for nothing
    bool is_empty() const { return again.empty() && next == count; }
  };
  struct Task {
    VersionNumber version = 0;
    Step step = Step::waiting;
    std::size_t on_way = 0;  // answers that have not come
    format::ParityManifest manifest;
    std::optional<protect::Stripes> stripes;
    std::uint64_t slice_bytes = 0;
    Line own;                          // slices of block 0
    Line others;                       // slices of the others, which other members make
    std::set<std::uint32_t> withheld;  // blocks that are not handed to us
    std::optional<Error> failed;       // this time
    std::optional<Error> blocker;      // the last time
    std::uint64_t not_before_ns = 0;
    bool there = false;  // an earlier agent of this run has made it
    bool removed = false;
    std::size_t told_lost = 0;  // so many members of the group
    VersionPin pin;             // while it is worked on
    bool has_slices_left() const { return !own.is_empty() || !others.is_empty(); }
    bool is_active() const { return step != Step::waiting && step != Step::done; }
  };

  FileOf segment(const Task& task, NodeId node) const;
  FileOf parity(const Task& task) const;
  Task* task_now(std::uint64_t& next);
  void start(Task& task);
  void sync(Task& task);
  void got_manifest(Task& task, std::size_t member, Result<Buffer> manifest);
  void open(Task& task);
  std::uint64_t encode(Task& task);
  bool begin_own(Task& task);
  bool begin_other(Task& task);
  static Slice next_slice(const Task& task, Line& line);
  std::uint64_t place(const Task& task, const Slice& slice) const;
  std::vector<CombinedSource> sources(const Task& task, std::uint32_t stripe, const Slice& slice);
  void made_own(Task& task, const Slice& slice, Lease lease, const Status& status);
  void ask_for(Task& task, const Slice& slice, Lease lease);
  void make_other(Task& task, const Slice& slice, Lease lease);
  bool try_again(Task& task, Line& line, const Slice& slice, const Status& status);
  void write(Task& task, const Slice& slice, Lease lease);
  void count_pulled(std::uint64_t bytes);
  bool may_be_made(VersionNumber version) const;
  NodeId member(std::uint32_t place) const { return group_[place % group_.size()]; }
  void seal(Task& task);
  void sealed(Task& task, const Result<HeldFile>& held);
  void fail(Task& task, const Error& error);
  // Nothing of a task that failed is under way any more: it ends.
  void settle(Task& task);
  void give_up(Task& task);
  void tell_weak(Task& task);
  // `callback(task, ...)`, with the task of that version.
  template <typename Callback>
  auto on_task(const Task& task, Callback callback);

  const ReplicatorWorld world_;
  StripeCoder& stripe_coder_;
  FileEvents& events_;
  const std::uint64_t bytes_per_s_;
  std::vector<NodeId> group_;              // this node's, in the order of the ring
  std::uint32_t self_ = 0;                 // this node's place in it
  ParityShape shape_;                      // of this group
  std::vector<protect::Combination> how_;  // to make each block of parity out of the data
  // So many blocks are made of this node's stripe, all but the first to be handed out. One, where
  // there is not memory for both at once, for what is made and for what is asked for.
  std::uint32_t makes_ = 1;
  bool hands_out() const { return makes_ > 1; }
  // To make at once what is made of this node's stripe.
  std::optional<protect::Combination> how_own_;
  std::optional<BufferQuota> making_, asking_;
  std::set<NodeId> lost_;
  std::map<VersionNumber, Task> tasks_;
  VersionNumber newest_ = 0;   // of those that ever were among the tasks
  std::uint64_t next_ns_ = 0;  // when the rate allows the next slice
  ParitySender parity_sender_;
  CallbackGuard callback_guard_;
};

}  // namespace backstay::agent
