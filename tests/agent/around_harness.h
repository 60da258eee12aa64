// One agent of a job on several nodes, as far as a restart needs it: ranks, store, drain, other
// agents and the directory's network are played, everything in memory and in one thread. What would
// come later from elsewhere comes in step().
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/disk/links.h"
#include "agent/group/remote_files.h"
#include "agent/hears.h"
#include "agent/redundancy/object_directory.h"
#include "agent/restart/restore.h"
#include "base/checksum.h"
#include "format/segment.h"

namespace backstay::agent::testing {

constexpr std::uint32_t slot_bytes = 64 * 1024;
constexpr std::byte ours{0xEE};  // what regions hold before a restart

std::vector<std::byte> object_of(Rank rank, RunId run, std::size_t bytes);

// What a node wrote for a version.
struct NodeFile {
  NodeFile(FileOf which, std::uint32_t nodes, std::uint32_t ranks, const std::vector<Rank>& here,
           std::size_t bytes);
  HeldFile held(bool recorded = true) const;
  format::CommitRecord record() const;

  FileOf file;
  format::Manifest manifest;
  Buffer encoded;
  Buffer segment;
};

class AgentHarness final : public Outbox, public StoreLink, public Peers, public FileReader {
 public:
  // Who has what, and how they fail.
  struct Disk {
    std::map<FileOf, const NodeFile*> files;
    std::set<std::pair<NodeId, std::uint64_t>> damage;  // node, place in the segment
    bool bad_manifests = false;
    std::optional<Code> fails;     // every read
    int reads_until_failure = -1;  // then `fails_then`
    Code fails_then = Code::agent_lost;
    int busy = 0;  // so many reads are answered with `again`
    int reads = 0;
  };

  AgentHarness(std::uint32_t buffers, std::uint32_t ranks_of_job, std::vector<Rank> local,
               std::uint32_t nodes = 4);

  // --- what is where ---
  std::map<NodeId, Disk> agents;  // 0: this one, through its peer file thread
  Disk disk;                      // this one's, through its store
  Disk durable;
  int durable_looks = 0;  // restarts that had it listed once more
  void put_local(const NodeFile& file);
  void put_in_doubt(const NodeFile& file);
  void put_durable(const NodeFile& file);
  // Nobody here knows of it before the directory is listed once more.
  void put_durable_late(const NodeFile& file);
  void list_durable();
  void put_at(NodeId agent, const NodeFile& file);
  void put_in_pool(const NodeFile& file);

  // Agents that have parity of the file's group make it again when they are asked.
  void put_parity_at(NodeId agent, const NodeFile& file);
  std::vector<NodeId> rebuilt_at;
  std::optional<Error> rebuilding_fails;

  // --- what the ranks do and see ---
  struct RankSees {
    wire::Plan plan;
    std::vector<std::byte> region;
    std::vector<wire::ChunkInPool> exchanged;
    std::vector<wire::ChunkInPool> kept;
    std::uint64_t delivered = 0;
    bool ready = false;
    bool delivering = false;
    bool over = false;
    Code code = Code::ok;
    std::string message;
    int plans = 0;
    int chunks = 0;  // of all plans, before they were delivered
  };
  bool proceed_at_once = true;
  std::set<Rank> take_early;  // each chunk that does not stay, but for their first
  int withdrawals = 0;
  std::vector<std::pair<NodeId, FileOf>> damaged;
  std::set<FileOf> not_to_be_needed;
  std::vector<std::string> events;

  static ConnectionId connection(Rank rank) { return rank + 100; }
  RankSees& rank(Rank rank) { return ranks_.at(rank); }
  void restart(VersionNumber version, RunId run, std::size_t bytes);
  void fetch(Rank by, Rank of, VersionNumber version, RunId run, std::size_t bytes);
  void proceed(Rank rank, bool good);
  void leave(Rank rank);
  // Until nothing happens any more.
  void settle();
  bool step();
  // All ranks ended with this code.
  void expect_over(Code code);
  void expect_restored(RunId run);
  void expect_untouched();
  JobState& state() { return state_; }
  ObjectDirectory& directory() { return directory_; }
  Restore& restore() { return *restore_; }

 private:
  std::uint32_t free_before() const;

  // Outbox
  void send(ConnectionId to, wire::Message message, std::vector<int>) override;
  void close(ConnectionId) override {}

  void answer(Rank rank, RankSees& sees, const wire::Message& message);
  void look_at(Rank rank, RankSees& sees, const wire::Chunks& chunks);
  void swap(RankSees& sees, const wire::ChunkInPool& chunk);
  void copy(RankSees& sees, const wire::ChunkInPool& chunk);
  void maybe_restored(Rank rank, RankSees& sees);

  // StoreLink
  Result<Network> make_network(const MemberId&, const std::string&) override {
    return Error(Code::unsupported, "no network in this test");
  }
  Status watch(int) override { return {}; }
  void post(Command command) override { serve(disk, Place::local, std::move(command)); }
  void post_drain(DrainCommand command) override {
    serve(durable, Place::durable, std::get<Command>(std::move(command)));
  }
  void serve(Disk& on, Place place, Command command);
  static Status bring(Disk& from, const NodeFile& file, std::uint64_t offset,
                      std::span<std::byte> memory);

  // FileReader
  void read(NodeId holder, const FileOf& file, std::uint64_t offset, std::span<std::byte> memory,
            Done done) override;
  void read_manifest(NodeId holder, const FileOf& file, DoneManifest done) override;

  // Peers: this agent is the registrar of all ranks.
  NodeId self() const override { return 0; }
  std::uint32_t members() const override { return 1; }
  void send(NodeId to, wire::peer::Message message) override;
  void offer(NodeId, std::uint64_t, Bytes, Ended) override { FAIL(); }
  void fetch(OfferFrom, std::span<std::byte>, Ended) override { FAIL(); }
  void refuse(OfferFrom) override { FAIL(); }

  std::unique_ptr<Pool> pool_;
  JobState state_;
  ObjectDirectory directory_;
  class Around final : public RemoteFiles {
   public:
    explicit Around(AgentHarness& agent) : agent_(agent) {}
    ObjectLookup& directory() override { return agent_.directory_; }
    FileReader& files() override { return agent_; }
    bool may_be_needed(const FileOf& file) const override {
      return !agent_.not_to_be_needed.contains(file);
    }
    void damaged(NodeId holder, const FileOf& file, const Error&) override {
      agent_.damaged.emplace_back(holder, file);
    }
    void rebuild(NodeId at, VersionOfRun, Rank, Rebuilt done) override {
      agent_.rebuild_(at, done);
    }

   private:
    AgentHarness& agent_;
  };
  Around around_;
  std::function<void(NodeId at, const RemoteFiles::Rebuilt& done)> rebuild_;
  std::deque<std::function<void()>> later_;
  std::map<Rank, RankSees> ranks_;
  std::unique_ptr<Restore> restore_;
};

}  // namespace backstay::agent::testing
