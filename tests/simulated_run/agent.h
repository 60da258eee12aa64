// One agent process of a simulated run: a whole Job, with the workers of its three disk threads
// played step by step. Nothing in it waits, sleeps or looks at the machine's clock, so that a seed
// replays it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/disk/links.h"
#include "agent/job/job.h"
#include "base/clock.h"
#include "base/fd.h"
#include "io/memory.h"
#include "net/loopback.h"
#include "net/lossy.h"
#include "simulated_run/promises.h"
#include "simulated_run/reuse.h"
#include "support/seed.h"
#include "tier/dir.h"

namespace backstay::simulated {

inline const std::string local_dir = "/local";
inline const std::string shared_dir = "/shared";

// Locks on shared storage, without a directory of the machine: the kernel's own, on files in
// memory.
class Locks {
 public:
  // Errors: busy.
  Result<store::HeldLock> take(const std::string& name);

 private:
  std::map<std::string, Fd> files_;
};

// An agent's end of the network. It outlives an agent whose power went off: other agents may still
// send to it.
struct Line {
  std::unique_ptr<net::LossyTransport> transport;
  std::map<std::pair<net::PeerId, net::OfferId>, Buffer> arrivals;  // of fetches under way
};

// What all agents share.
struct Surroundings {
  ManualClock& clock;
  test::Random& random;
  net::LoopbackNetwork& network;
  io::MemoryFileSystem& shared;
  Locks& locks;
  // Of agents whose power went off: their ends of connections stay open, and silent.
  std::vector<std::shared_ptr<Line>>& silent;
  net::LossyPlan faults;  // of each agent's network
  double heartbeat_s = 0.02;
  std::uint32_t buffers = 24;  // of the ranks' pool
};

// How an agent ends.
enum class End {
  killed,      // its connections close, as the kernel does it
  powered_off  // other agents notice by its silence
};

class SimulatedAgent final : public agent::Outbox,
                             public agent::StoreLink,
                             public agent::PeerFileLink {
 public:
  using ToRank = std::function<void(agent::ConnectionId, wire::Message)>;
  // `disk` and all else outlive it.
  SimulatedAgent(const Surroundings& around, io::MemoryFileSystem& disk, ToRank to_rank);
  ~SimulatedAgent() override;
  void prepare_end(End how) { end_ = how; }

  agent::Job& job() { return *job_; }
  const agent::Job& job() const { return *job_; }
  agent::Pool& pool() { return *pool_; }

  // Does one thing of those that may happen next, chosen by the seed.
  void step();
  void listen();  // to the network
  // Files may have gone since this was asked last.
  bool may_have_removed() { return std::exchange(may_have_removed_, false); }
  // Nothing is left to do but what time or others bring.
  bool idle() const;
  // The last run of which it has announced a level, and so removed what need not stay; 0: none was.
  RunId retained_for() const { return retained_for_; }
  // The newest version of the agent's run of which it has told other agents that its part is
  // protected, and the number of that part, once all orders that its store had before that are
  // carried out. Version 0: none. The root of the tree tells none.
  std::pair<VersionNumber, NodeId> vouches_for() const {
    const bool counts = handled_ >= vouched_.after && vouched_.self.run == job_->state().run;
    return {counts ? vouched_.version : 0, vouched_.self.node};
  }
  std::string describe() const;
  // Versions that it sealed since this was asked last, and that need others.
  std::uint64_t take_needing() { return store_->take_needing(); }

  void send(agent::ConnectionId to, wire::Message message, std::vector<int> descriptors) override;
  void close(agent::ConnectionId) override {}
  void post(agent::Command command) override {
    ++posted_;
    store_commands_.push_back(std::move(command));
  }
  void post_drain(agent::DrainCommand command) override {
    drain_commands_.push_back(std::move(command));
  }
  void post(agent::PeerFileCommand command) override {
    peer_file_commands_.push_back(std::move(command));
  }
  Result<agent::Network> make_network(const agent::MemberId& self, const std::string&) override;
  const agent::PeerFileParts* peer_files() override { return &parts_; }

 private:
  Result<std::unique_ptr<tier::Tier>> open(io::FileSystem& files, tier::DirOptions options);
  agent::DrainWorld drain_world();
  void step_store();
  void step_drain();
  void step_peer_files();
  void take_event();
  void handle(agent::Command command);
  void overhear(RunId run, Bytes sent);

  const Surroundings& around_;
  io::MemoryFileSystem& disk_;
  const std::shared_ptr<tier::SafeFolders> folders_ = std::make_shared<tier::SafeFolders>();
  // How often each of its threads does something: that of the store, of the drain, of the peer file
  // thread, and the main loop's two halves. The node's disk may be slow for one of its two users.
  std::array<std::uint64_t, 5> speeds_{8, 8, 8, 8, 8};
  const ToRank to_rank_;
  End end_ = End::killed;
  std::string name_;  // its own on shared storage
  std::unique_ptr<agent::Pool> pool_;
  agent::StagingBuffers serving_{4, buffer_bytes};
  agent::StagingBuffers keeping_{4, buffer_bytes};
  agent::PeerFileParts parts_{*this, serving_, keeping_};
  std::deque<agent::Command> store_commands_;
  std::deque<agent::DrainCommand> drain_commands_;
  std::deque<agent::PeerFileCommand> peer_file_commands_;
  std::deque<std::function<void()>> events_;  // what the threads have told the main loop
  std::unique_ptr<ReusingStore> store_;
  std::unique_ptr<agent::DrainWorker> drain_;
  std::unique_ptr<agent::PeerFileWorker> peer_files_;
  std::vector<std::weak_ptr<Line>> lines_;
  std::uint64_t posted_ = 0;   // to the store
  std::uint64_t handled_ = 0;  // by it
  bool may_have_removed_ = false;
  RunId retained_for_ = 0;
  struct Vouched {
    agent::MemberId self;
    VersionNumber version = 0;
    std::uint64_t after = 0;  // so many handled orders
  };
  Vouched vouched_;
  std::unique_ptr<agent::Job> job_;
};

}  // namespace backstay::simulated
