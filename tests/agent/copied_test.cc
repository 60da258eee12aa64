// A tool says that another host has a copy of a version of captured files: the version's own agent
// records the level and tells it.
#include <gtest/gtest.h>

#include <chrono>

#include "format/names.h"
#include "refusing_tier.h"
#include "server_fixture.h"

namespace backstay::agent::testing {
namespace {

const std::string files_job = "job.files.n1";

class CopiedTest : public ServerTest {
 protected:
  Made tier_in(const std::string&) override {
    return Made(std::make_unique<RefusingTier>(disk_, std::make_shared<Warning>()));
  }

  Peer writer() {
    Peer peer(path());
    wire::Join join;
    join.job = files_job;
    join.dir = folder_;
    join.pid = 4711;
    join.keep = 100;
    peer.send(join);
    run_ = peer.take<wire::Welcome>().run;
    return peer;
  }
  static VersionNumber save(Peer& peer) {
    peer.send(wire::Open{1});
    const VersionNumber version = peer.take<wire::Opened>().version;
    const auto grant = peer.take<wire::Grant>();
    peer.send(wire::Filled{version, {{grant.buffers.at(0), 100, 0, 77}}});
    peer.send(wire::Finish{version, 100});
    EXPECT_EQ(peer.take<wire::Captured>().code, Code::ok);
    return version;
  }
  static wire::LevelIs level(Peer& peer, VersionNumber version, Level wanted) {
    peer.send(wire::Await{version, wanted});
    return peer.take<wire::LevelIs>();
  }
  Code say(const std::string& job, VersionNumber version, RunId run) {
    Peer hand = tool();
    hand.send(wire::Copied{job, folder_, version, run});
    return hand.take<wire::Answer>().code;
  }

  // It is announced a moment after the tool has its answer.
  static bool becomes_protected(Peer& peer, VersionNumber version) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < deadline)
      if (level(peer, version, Level::protected_).level == Level::protected_) return true;
    return false;
  }

  RunId run_ = 0;
  std::shared_ptr<tier::Tier> disk_ = tier::make_memory_tier();
};

TEST_F(CopiedTest, AVersionThatAnotherHostHasIsProtected) {
  Peer one = writer();
  const VersionNumber version = save(one);
  EXPECT_EQ(level(one, version, Level::local).level, Level::local);
  EXPECT_EQ(level(one, version, Level::protected_).code, Code::unsupported);
  EXPECT_EQ(say("job.files.n2", version, run_), Code::not_found);
  EXPECT_EQ(say(files_job, version + 1, run_), Code::not_found);
  EXPECT_EQ(say(files_job, version, run_ + 1), Code::not_found);
  EXPECT_EQ(level(one, version, Level::local).level, Level::local);
  for (int twice = 0; twice < 2; ++twice) EXPECT_EQ(say(files_job, version, run_), Code::ok);
  EXPECT_TRUE(becomes_protected(one, version));
  const auto folder = format::version_folder(files_job, version);
  EXPECT_TRUE(disk_->get(format::commit_name(folder, Level::protected_), 1 << 20).ok());
  const VersionNumber next = save(one);
  EXPECT_EQ(level(one, next, Level::local).level, Level::local) << "it has no copy yet";
}

// Its version is of an earlier run by then.
TEST_F(CopiedTest, TheNextAgentIsToldAndKnowsWhatWasTold) {
  Peer one = writer();
  const VersionNumber first = save(one);
  const VersionNumber second = save(one);
  const RunId run = run_;
  EXPECT_EQ(level(one, second, Level::local).level, Level::local);
  EXPECT_EQ(level(one, first, Level::local).level, Level::local);
  EXPECT_EQ(say(files_job, first, run), Code::ok);
  EXPECT_TRUE(becomes_protected(one, first));
  one.close();
  end_server();
  start();
  Peer next = writer();
  EXPECT_EQ(level(next, first, Level::protected_).level, Level::protected_);
  EXPECT_EQ(level(next, second, Level::local).level, Level::local);
  EXPECT_NE(run_, run);
  EXPECT_EQ(say(files_job, second, run), Code::ok);
  EXPECT_TRUE(becomes_protected(next, second));
}

}  // namespace
}  // namespace backstay::agent::testing
