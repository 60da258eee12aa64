// When the main loop closes a job whose program has ended: its lock, its thread and its buffers
// come free, and a program that comes back finds its versions in the pool as long as they are
// there.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "client/session.h"
#include "refusing_tier.h"
#include "server_fixture.h"
#include "store/job_lock.h"
#include "tier/memory.h"

namespace backstay::agent::testing {
namespace {

using client::Group;
using client::Session;
using nlohmann::json;

class ServerJobs : public ServerTest {
 protected:
  void SetUp() override {}  // each test starts it
  Made tier_in(const std::string&) override {
    return Made(std::make_unique<RefusingTier>(disk_, trouble_));
  }

  json status() { return json::parse(ServerTest::status().json); }
  // Asks the agent again and again: each question is a turn of its loop.
  template <typename Condition>
  json status_once(const char* what, Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    json now = status();
    while (!condition(now) && std::chrono::steady_clock::now() < deadline) now = status();
    EXPECT_TRUE(condition(now)) << "never happened: " << what << ": " << now.dump();
    return now;
  }
  json closed() {
    return status_once("closed", [](const json& now) { return now["jobs"].empty(); });
  }
  json all_left() {
    return status_once("left", [](const json& now) { return now["jobs"][0]["connected"] == 0; });
  }

  std::unique_ptr<Session> session(const std::string& job = "job") {
    const std::string config = folder_ + "/" + job + ".toml";
    std::ofstream(config) << "[job]\nname = \"" << job << "\"\n[storage]\ndir = \"" << folder_
                          << "\"\n[agent]\nsocket = \"" << folder_
                          << "/s/agent.sock\"\nprogram = \"/nonexistent/backstayd\"\n";
    auto started = Session::start(Group(), config.c_str());
    EXPECT_TRUE(started.ok()) << started.error().to_string();
    backstay_array array{};
    array.dims = 1;
    array.shape[0] = data_.size();
    EXPECT_TRUE((*started)->protect("u", data_.data(), &array, BACKSTAY_BYTE).ok());
    return std::move(*started);
  }
  // A program that saves one version and ends once it is local.
  void save(const std::string& job = "job") {
    auto program = session(job);
    ASSERT_TRUE(program->checkpoint().ok());
    ASSERT_TRUE(program->wait(program->version(), Level::local, 20).ok());
  }
  // Whether another agent could serve the job.
  Code code_of_lock(const std::string& job) {
    const Status unlocked = store::check_unlocked(folder_, job);
    const auto lock = store::lock_job(folder_, job);
    EXPECT_EQ(unlocked.ok(), lock.ok());
    return lock.ok() ? Code::ok : lock.error().code();
  }
  static std::size_t threads() {
    std::filesystem::directory_iterator all("/proc/self/task");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  // A tool that waits for the job's first version after `after`; the agent knows by the return.
  Peer waiting(VersionNumber after) {
    Peer one = tool();
    one.send(wire::AwaitNewer{"job", folder_, after});
    status();
    return one;
  }

  std::shared_ptr<tier::Tier> disk_ = tier::make_memory_tier();
  std::shared_ptr<Warning> trouble_ = std::make_shared<Warning>();
  std::vector<unsigned char> data_ = std::vector<unsigned char>(3 * buffer_bytes, 7);
};

TEST_F(ServerJobs, WithNothingInThePoolAreClosedAtOnce) {
  start(for_ever);
  const std::size_t before = threads();
  for (int job = 0; job < 20; ++job) {
    const auto program = session("job" + std::to_string(job));
    EXPECT_EQ(code_of_lock("job" + std::to_string(job)), Code::busy);
  }
  closed();
  // Not more: the pool's own thread ends some time, and the kernel lists a joined one a moment
  // longer.
  status_once("threads ended", [&](const json&) { return threads() <= before; });
  EXPECT_EQ(code_of_lock("job3"), Code::ok) << "another agent may serve it";
  session("job3");  // and so may this one
}

TEST_F(ServerJobs, WhoLooksForTheLockDoesNotHoldItAgainstOthersWhoLook) {
  start(for_ever);
  session("job");
  closed();
  const Fd other(::open((folder_ + "/job/lock").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(::flock(other.get(), LOCK_SH | LOCK_NB), 0);
  EXPECT_TRUE(store::check_unlocked(folder_, "job").ok());
}

TEST_F(ServerJobs, WithVersionsInThePoolStayForAFastRestart) {
  start(for_ever);
  save();
  const json left = all_left();
  EXPECT_TRUE(left["jobs"][0]["versions"][0]["in_pool"]);
  EXPECT_EQ(code_of_lock("job"), Code::busy);
  ASSERT_TRUE(session()->restart().ok());
  EXPECT_EQ(status()["disk"]["read_bytes"], 0) << "it came from the pool";
}

TEST_F(ServerJobs, AreClosedOnceNobodyCameForLong) {
  start(0.01);
  save();
  const json after = closed();
  EXPECT_EQ(after["pool"]["free"], buffers);
  EXPECT_EQ(code_of_lock("job"), Code::ok);
  std::fill(data_.begin(), data_.end(), 0);
  const auto program = session();
  ASSERT_TRUE(program->restart().ok());
  EXPECT_EQ(program->version(), 1u);
  EXPECT_EQ(data_[0], 7);
}

TEST_F(ServerJobs, AreClosedOnceOthersNeededTheirBuffers) {
  start(for_ever);
  save("small");
  data_.resize((buffers - 1) * buffer_bytes);
  save("large");
  const json now = status_once("one", [](const json& all) { return all["jobs"].size() == 1; });
  EXPECT_EQ(now["jobs"][0]["job"], "large");
  EXPECT_EQ(code_of_lock("small"), Code::ok);
}

// Far more than the pool has room for, of which only little is read.
TEST_F(ServerJobs, GiveOneRegionWithoutMovingTheOthers) {
  start(0);
  std::vector<unsigned char> small(1000, 9);
  data_.resize(4 * buffers * buffer_bytes, 1);
  {
    auto program = session();
    backstay_array array{};
    array.dims = 1;
    array.shape[0] = small.size();
    ASSERT_TRUE(program->protect("v", small.data(), &array, BACKSTAY_BYTE).ok());
    ASSERT_TRUE(program->checkpoint().ok());
    ASSERT_TRUE(program->wait(1, Level::local, 20).ok());
  }
  closed();
  auto program = session();
  std::vector<unsigned char> read(small.size());
  ASSERT_TRUE(program->read_region(1, "v", read.data(), read.size()).ok());
  EXPECT_EQ(read, small);
  EXPECT_LE(status()["disk"]["read_bytes"], 4 * buffer_bytes);
  std::vector<unsigned char> large(data_.size());
  ASSERT_TRUE(program->read_region(1, "u", large.data(), large.size()).ok());
  EXPECT_EQ(large, data_);
}

// What was reported is not dropped while the agent lives.
TEST_F(ServerJobs, StayWithAVersionThatCouldNotBeWritten) {
  start(0);
  trouble_->full = true;
  {
    auto program = session();
    ASSERT_TRUE(program->checkpoint().ok());
    EXPECT_EQ(program->wait(1, Level::local, 20).error().code(), Code::no_space);
  }
  all_left();
  { const auto other = session("other"); }
  status_once("other closed", [](const json& now) { return now["jobs"].size() == 1; });
  trouble_->full = false;
  auto program = session();
  ASSERT_TRUE(program->restart().ok());
  EXPECT_EQ(program->version(), 1u);
}

TEST_F(ServerJobs, GiveUpWhatCannotBeWrittenWhereOthersNeedThePool) {
  start(for_ever);
  data_.resize((buffers - 2) * buffer_bytes);
  trouble_->full = true;
  {
    auto program = session();
    ASSERT_TRUE(program->checkpoint().ok());
    EXPECT_EQ(program->wait(1, Level::local, 20).error().code(), Code::no_space);
  }
  all_left();
  trouble_->full = false;
  save("other");
}

TEST_F(ServerJobs, WhatIsLostIsSaidToWhoeverEndsTheAgent) {
  start(for_ever);
  trouble_->full = true;
  {
    auto program = session();
    ASSERT_TRUE(program->checkpoint().ok());
    EXPECT_EQ(program->wait(1, Level::local, 20).error().code(), Code::no_space);
  }
  all_left();
  Peer one = tool();
  one.send(wire::Shutdown{});
  EXPECT_EQ(one.take<wire::Answer>().code, Code::ok);
  const auto last = one.take<wire::Answer>();
  EXPECT_EQ(last.code, Code::io);
  EXPECT_THAT(last.json, ::testing::HasSubstr("version 1 of job job: the disk is full"));
}

TEST_F(ServerJobs, TellAToolOnceANewerVersionIsLocal) {
  start(for_ever);
  auto program = session();
  Peer early = waiting(0);
  EXPECT_FALSE(early.readable(0));
  ASSERT_TRUE(program->checkpoint().ok());
  const auto answer = early.take<wire::Answer>();
  EXPECT_EQ(answer.code, Code::ok);
  const json version = json::parse(answer.json);
  EXPECT_EQ(version["version"], 1);
  EXPECT_EQ(version["level"], "local");
  EXPECT_EQ(waiting(0).take<wire::Answer>().code, Code::ok) << "it is there already";
  Peer next = waiting(1);
  EXPECT_FALSE(next.readable(0));
  ASSERT_TRUE(program->checkpoint().ok());
  EXPECT_EQ(json::parse(next.take<wire::Answer>().json)["version"], 2);
}

TEST_F(ServerJobs, TellAToolThatTheVersionItWaitsForFailed) {
  start(for_ever);
  trouble_->full = true;
  auto program = session();
  Peer tool = waiting(0);
  ASSERT_TRUE(program->checkpoint().ok());
  const auto answer = tool.take<wire::Answer>();
  EXPECT_EQ(answer.code, Code::io);
  EXPECT_THAT(answer.json, ::testing::HasSubstr("version 1 failed: the disk is full"));
}

TEST_F(ServerJobs, TellAToolThatNoVersionWillCome) {
  start(for_ever);
  EXPECT_EQ(waiting(0).take<wire::Answer>().code, Code::not_found) << "the job is not open";
  auto program = session();
  Peer tool = waiting(0);
  EXPECT_FALSE(tool.readable(0));
  program.reset();
  EXPECT_EQ(tool.take<wire::Answer>().code, Code::not_found) << "it was closed";
}

TEST_F(ServerJobs, ForgetAToolThatHasGone) {
  start(for_ever);
  auto program = session();
  waiting(0).close();
  ASSERT_TRUE(program->checkpoint().ok());
  ASSERT_TRUE(program->wait(1, Level::local, 20).ok());
  EXPECT_EQ(waiting(0).take<wire::Answer>().code, Code::ok);
}

}  // namespace
}  // namespace backstay::agent::testing
