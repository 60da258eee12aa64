// The decisions of two nodes, and of one alone: a played store and program, a real tree between
// them.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/disk/links.h"
#include "agent/group/request_publisher.h"
#include "agent/job/commit_coordinator.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/loopback.h"

namespace backstay::agent::testing {

inline constexpr double heartbeat_s = 0.01;

// The decisions of one node; the test plays its store.
class DecidingNode final : public Outbox, public StoreLink, private PeerEvents, private RunEvents {
 public:
  DecidingNode(NodeId node, std::uint32_t nodes, net::LoopbackNetwork& network, const Clock& clock)
      : network_(network),
        pool_(std::move(Pool::create({64 * 1024, 16 * 1024, false}).value())),
        state{.name = "job",
              .dir = "/unused",
              .node = node,
              .nodes = nodes,
              .pool = *pool_,
              .outbox = *this,
              .store = *this,
              .events = *this,
              .clock = clock},
        coordinator(state, *this, *this) {}

  void begin_run(RunId run);
  StoredVersion stored(VersionNumber version, RunId run) const;
  // In the pool, on its way to the disk.
  MemoryVersion& capture(VersionNumber version, RunId run);
  void seal(VersionNumber version, RunId run);
  void write_record(VersionNumber version, RunId run, Level level = Level::local);
  // Levels that may be reported, in the order in which they were announced.
  std::vector<std::pair<VersionNumber, Level>>& told();
  // Versions whose record the store was to write since the last call.
  std::vector<VersionNumber> asked() { return std::exchange(asked_, {}); }
  bool has_asked() const { return !asked_.empty(); }

  // StoreLink, Outbox
  void post(Command command) override;
  void post_drain(DrainCommand) override {}
  Result<Network> make_network(const MemberId& self, const std::string&) override {
    return Network{network_.make(self.text()), heartbeat_s};
  }
  Status watch(int) override { return {}; }
  void send(ConnectionId, wire::Message message, std::vector<int>) override;
  void close(ConnectionId) override {}

 private:
  void message(NodeId, const wire::peer::Message&) override {}
  void offered(NodeId, std::uint64_t, std::uint64_t, OfferFrom) override {}
  void lost(NodeId, const Error&) override {}
  void membership(const tree::Membership&) override {}
  void released(std::uint64_t, std::uint64_t) override {}
  void reached(NodeId) override {}
  void fact(const tree::Fact& fact) override;
  void ticked() override { ++ticks; }

  net::LoopbackNetwork& network_;
  std::unique_ptr<Pool> pool_;
  std::vector<VersionNumber> asked_;
  std::vector<std::pair<VersionNumber, Level>> told_;

 public:
  std::vector<VersionNumber> protected_asked;
  std::vector<std::string> facts;
  std::vector<std::string> events;
  std::vector<wire::LevelIs> answers;
  int tools_answered = 0;
  int ticks = 0;
  JobState state;
  CommitCoordinator coordinator;
  // As ranks of this node read it.
  std::uint32_t requested() const;
  std::unique_ptr<ControlPage> page = std::move(ControlPage::create().value());
  RequestPublisher requests{state, *page};
};

// It is whole on the node's disk, with a record of that level.
void find_recorded(DecidingNode& node, VersionNumber version, RunId run, Level level);
// The parts of these nodes are on the node's disk, and no record is.
void find_in_doubt(DecidingNode& node, VersionNumber version, RunId run, std::vector<NodeId> parts);

class CommitCoordinatorTest : public ::testing::Test {
 protected:
  CommitCoordinatorTest() { spdlog::set_level(spdlog::level::critical); }

  void begin_run(RunId run);
  // False if it does not happen in 20 s.
  template <typename Condition>
  bool until(Condition done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      pollfd all[] = {{a_.coordinator.run_membership()->descriptor(), POLLIN, 0},
                      {b_.coordinator.run_membership()->descriptor(), POLLIN, 0}};
      ::poll(all, 2, 10);  // fleets of earlier runs have others
      a_.coordinator.progress();
      b_.coordinator.progress();
    }
    return true;
  }
  // Several ticks of both, and what follows from them.
  bool pass_ticks();

  ManualClock clock_;
  net::LoopbackNetwork network_{clock_};
  DecidingNode alone_{0, 1, network_, clock_};
  DecidingNode a_{0, 2, network_, clock_};
  DecidingNode b_{1, 2, network_, clock_};
};

}  // namespace backstay::agent::testing
