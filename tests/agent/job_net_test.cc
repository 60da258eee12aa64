// What a job does with its network, over one that nobody else is on.
#include <gtest/gtest.h>

#include "harness.h"
#include "io/memory.h"
#include "net/loopback.h"
#include "tier/dir.h"

namespace backstay::agent::testing {
namespace {

constexpr double dead_after_s = 0.05;

// Notes when it is paused.
class NotingTransport final : public net::Transport {
 public:
  NotingTransport(std::unique_ptr<net::Transport> inner, std::vector<bool>& pauses)
      : inner_(std::move(inner)), pauses_(pauses) {}
  const net::Facts& facts() const override { return inner_->facts(); }
  std::vector<net::Event> progress() override { return inner_->progress(); }
  net::PeerId connect(const std::string& address) override { return inner_->connect(address); }
  Status send(net::PeerId peer, Bytes bytes) override { return inner_->send(peer, bytes); }
  Result<net::OfferId> offer(net::PeerId peer, Bytes header, Bytes memory) override {
    return inner_->offer(peer, header, memory);
  }
  Status fetch(net::PeerId peer, net::OfferId offer, std::span<std::byte> memory) override {
    return inner_->fetch(peer, offer, memory);
  }
  Status refuse(net::PeerId peer, net::OfferId offer) override {
    return inner_->refuse(peer, offer);
  }
  void pause(bool on) override {
    pauses_.push_back(on);
    inner_->pause(on);
  }
  void close(net::PeerId peer) override { inner_->close(peer); }

 private:
  const std::unique_ptr<net::Transport> inner_;
  std::vector<bool>& pauses_;
};

class JobOnTheNetwork : public ::testing::Test {
 protected:
  JobOnTheNetwork() {
    job.nodes = 2;
    job.transport = std::make_unique<NotingTransport>(network.make("here"), pauses);
    job.after_step = [this] { job.job().network(); };
  }
  void SetUp() override { job.join_all(1); }
  // The other node never comes. Its membership starts; files of others are not kept here.
  void know_the_others() {
    const wire::Neighbours all{true, {{0, "here", ""}, {1, "nobody", ""}}};
    EXPECT_EQ(job.job().receive(JobHarness::connection(0), all).error().code(), Code::unsupported);
  }
  static DrainWorld unmounted() {
    DrainWorld world;
    world.open_durable = [](const std::string& dir) -> Result<std::unique_ptr<tier::Tier>> {
      return Error(Code::io, dir + " is not mounted");
    };
    return world;
  }
  wire::Captured save(VersionNumber version) {
    return job.capture(1, version, [](Rank) {
      return std::vector<std::byte>(3 * JobHarness::buffer_bytes, std::byte{5});
    });
  }

  io::MemoryFileSystem disk;
  net::LoopbackNetwork network{system_clock(), {.dead_after_s = dead_after_s}};
  std::vector<bool> pauses;
  JobHarness job{16,
                 [this] {
                   return tier::open_dir_tier(
                       disk, [] { return io::make_memory_ring({.depth = 4, .seed = 1}); },
                       {.root = "/disk"});
                 },
                 JobHarness::Threads::real, unmounted()};
};

TEST_F(JobOnTheNetwork, WhatOthersFetchWaitsWhileRanksCopy) {
  ASSERT_EQ(save(1).code, Code::ok);
  job.run_until("goes on", [&] { return !pauses.empty() && !pauses.back(); });
  EXPECT_EQ(pauses, (std::vector<bool>{true, false}));
}

// Nothing happens any more but that time passes.
TEST_F(JobOnTheNetwork, WhoWaitsIsToldOfALostNodeInTheEnd) {
  know_the_others();
  ASSERT_EQ(save(1).code, Code::ok);
  job.receive(0, wire::Await{1, Level::local});
  job.run_until("an answer", [&] { return job.has<wire::LevelIs>(0); });
  const auto answer = job.take<wire::LevelIs>(0);
  EXPECT_EQ(answer.code, Code::agent_lost) << answer.message;
  EXPECT_NE(answer.message.find("node 1"), std::string::npos) << answer.message;
}

// Its ranks' answer must not wait for the other node: ranks there whose agent has died wait for
// ours.
TEST_F(JobOnTheNetwork, WhatIsTooLargeForThePoolIsCapturedOnceThisNodeHasItsPart) {
  const auto captured = job.capture(1, 1, [](Rank) {
    return std::vector<std::byte>(20 * JobHarness::buffer_bytes, std::byte{5});
  });
  EXPECT_EQ(captured.code, Code::ok) << captured.message;
  EXPECT_EQ(job.job().level_of(1).level, Level::captured);
}

TEST_F(JobOnTheNetwork, TooFewNodesAreARefusalOfWhichRunHears) {
  job.leave(0, /*goodbye=*/true);
  job.replicas = 2;
  ASSERT_TRUE(job.join(0, 1, 8).ok()) << "it waits for a look at the disk";
  job.run_until("a refusal", [&] { return job.has<wire::Failure>(0); });
  EXPECT_EQ(job.take<wire::Failure>(0).code, Code::few_nodes);
  const auto& refused = job.job().state().refused;
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->why.code(), Code::few_nodes);
  EXPECT_NE(refused->why.message().find("protect.replicas"), std::string::npos);
  job.nodes = 1;
  job.join_all(1, 9);
  EXPECT_FALSE(refused.has_value()) << "another run has begun";
}

class JobWithADurableDirectory : public JobOnTheNetwork {
 protected:
  JobWithADurableDirectory() { job.durable.dir = "/shared"; }
};

// Its mark of life there would keep the run away that goes on without that node.
TEST_F(JobWithADurableDirectory, AProgramThatHasLostANodeKeepsNobodyAway) {
  know_the_others();
  job.run_until("the loss", [&] { return job.live_said.size() >= 2; });
  EXPECT_EQ(job.live_said, (std::vector<bool>{true, false}));
}

}  // namespace
}  // namespace backstay::agent::testing
