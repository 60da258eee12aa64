// The agents of a run in one thread, with one directory on shared storage and a played network. A
// seed chooses what happens next; messages of one agent to another keep their order. Locks are
// real.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/disk/links.h"
#include "agent/drain/durability.h"
#include "agent/hears.h"
#include "agent/written_part.h"
#include "base/log.h"
#include "format/names.h"
#include "format/segment.h"
#include "io/faulty.h"
#include "io/memory.h"
#include "store/job_lock.h"
#include "support/seed.h"
#include "tier/dir.h"

namespace backstay::agent::testing {

inline constexpr std::uint32_t chunk_bytes = 16 * 1024;
inline const std::string local_dir = "/local";
inline const std::string shared_dir = "/shared";

class DrainWorldPlayed;

class Member final : public Peers, public StoreLink, public Outbox {
 public:
  Member(DrainWorldPlayed& world, NodeId self);

  NodeId self() const override { return self_; }
  std::uint32_t members() const override;
  void send(NodeId to, wire::peer::Message message) override;
  void offer(NodeId, std::uint64_t, Bytes, Ended) override {}
  void fetch(OfferFrom, std::span<std::byte>, Ended) override {}
  void refuse(OfferFrom) override {}
  void post(Command) override {}
  void post_drain(DrainCommand command) override { commands.push_back(std::move(command)); }
  void send(ConnectionId, wire::Message, std::vector<int>) override {}
  void close(ConnectionId) override {}

  bool told(VersionNumber version) const { return state.is_durable(version); }
  std::optional<Code> why_not(VersionNumber version) const;
  bool writes() const { return drain->busy(); }

 private:
  DrainWorldPlayed& world_;
  const NodeId self_;

 public:
  std::unique_ptr<Pool> pool;
  JobState state;
  HeldFiles files;  // on its disk
  std::shared_ptr<io::Faults> faults;
  std::unique_ptr<io::FileSystem> shared;  // with those faults
  std::deque<DrainCommand> commands;
  std::deque<Event> events;
  bool slow = false;     // its drain does nothing
  bool stopped = false;  // the agent does nothing
  Levels levels{state};
  void wait_durable(VersionNumber version) { levels.await(1, {version, Level::durable}); }
  std::unique_ptr<DrainWorker> drain;
  std::unique_ptr<Durability> durability;
};

class DrainWorldPlayed {
 public:
  explicit DrainWorldPlayed(std::uint32_t nodes, DurableSettings how = {.dir = shared_dir},
                            std::uint64_t seed = test::seed());
  ~DrainWorldPlayed();

  // Another run: `disks` of the one before, by node; more nodes have empty ones.
  void begin_run(std::uint32_t nodes, RunId number, const std::vector<NodeId>& from = {});
  std::uint32_t size() const { return static_cast<std::uint32_t>(members_.size()); }
  Member& operator[](NodeId node) { return *members_[node]; }
  bool lives(NodeId node) const { return members_[node] != nullptr; }
  test::Random& random() { return random_; }
  io::MemoryFileSystem& disk(NodeId node) { return *disks_[node]; }

  // An agent with the disk of that node; what lies there is known to it, and recorded as local.
  void start(NodeId node, io::FaultPlan plan = {}, bool others_live = true);

  // --- versions ---
  // Node `node` of the present run writes its part, on its disk and on those of `copies`; the level
  // local is told with local().
  void write(NodeId node, VersionNumber version, const std::vector<NodeId>& copies = {},
             std::uint32_t chunks = 3, std::optional<VersionNumber> older = {});
  // A copy of node `node`'s part comes to another one, which knows the version already.
  void copy(NodeId node, VersionNumber version, NodeId keeper);
  // The last chunk of each part lies in the segment of `older`, if that is given.
  void save(VersionNumber version, std::uint32_t replicas = 0,
            std::optional<VersionNumber> older = {});
  void local(VersionNumber version);

  // --- what happens ---
  bool step();
  void run_to_rest();
  template <typename Condition>
  bool run_until(Condition done) {
    while (!done()) {
      if (!step()) return false;
    }
    return true;
  }

  // --- what goes wrong ---
  void cut(NodeId a, NodeId b);
  void kill(NodeId node);
  // All that live learn it from the tree.
  void membership(const std::vector<NodeId>& lost, const std::vector<NodeId>& back);

  // The program begins or ends, or its run has lost a node.
  void live(bool on);
  // As an agent of another run takes it.
  Result<store::HeldLock> mark() { return store::lock_live(locks_, "job"); }

  // A byte of the part of a node, on its own disk.
  void damage(NodeId node, VersionNumber version);

  // --- what lies on the shared storage ---
  // Good versions; each must have every byte of every part.
  std::vector<VersionNumber> there();
  std::vector<std::string> folders();
  // Everybody has come to rest: no turn, no lock, nothing that retention may not touch.
  void expect_rest();

  std::unique_ptr<tier::Tier> open(io::FileSystem& files, const std::string& dir,
                                   std::shared_ptr<io::Faults> faults,
                                   const std::string& writer = "");

  // --- the members' own ---
  void send(NodeId from, NodeId to, wire::peer::Message message);
  DrainWorld world_of(Member& member);
  io::FaultPlan plan_of(NodeId node) { return plans_[node]; }

  DurableSettings settings;
  RunId run = 0;
  ManualClock clock;
  std::shared_ptr<io::MemoryFileSystem> shared = std::make_shared<io::MemoryFileSystem>();
  std::size_t writers_max = 0;  // at once, so far

 private:
  DrainCoordinator& coordinator(NodeId node) { return *members_[node]->durability->coordinator(); }
  void know(Member& member, const format::CommitRecord& record) {
    member.state.versions.found({record.version, Level::local, record}, Where::disk);
  }
  // Only this agent does anything, until it has nothing more to do.
  void act_alone(Member& member);
  void do_one(NodeId node, int what, std::pair<NodeId, NodeId> way);

  void write_at(NodeId disk, NodeId node, VersionNumber version, std::uint32_t chunks,
                std::optional<VersionNumber> older);
  static std::pair<Buffer, Buffer> parts_of(io::FileSystem& files, const std::string& dir,
                                            const FileOf& file);
  void expect_whole(const format::CommitRecord& record);

  test::Random random_;
  std::filesystem::path locks_;
  std::vector<std::shared_ptr<io::MemoryFileSystem>> disks_;
  std::vector<std::unique_ptr<Member>> members_;
  std::map<NodeId, io::FaultPlan> plans_;
  std::map<std::pair<NodeId, NodeId>, std::deque<std::function<void()>>> ways_;
  std::map<std::pair<FileOf, NodeId>, std::pair<io::MemoryFileSystem*, HeldFile>> on_disk_;
  std::map<FileOf, std::pair<Buffer, Buffer>> originals_;
};

inline std::uint32_t Member::members() const { return world_.size(); }

}  // namespace backstay::agent::testing
