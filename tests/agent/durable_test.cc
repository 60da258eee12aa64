// Versions that become durable, and restarts from there: a job with a real store and drain, on two
// disks in memory, played step by step.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "agent/version/warnings.h"
#include "format/names.h"
#include "harness.h"
#include "io/faulty.h"
#include "io/memory.h"
#include "store/catalog.h"
#include "store/job_lock.h"
#include "tier/dir.h"

namespace backstay::agent {
namespace {

using testing::JobHarness;

constexpr std::uint32_t ranks = 2;
const std::string local = "/local";
const std::string shared = "/shared";

std::vector<std::byte> data(VersionNumber version, Rank rank) {
  std::vector<std::byte> bytes(150'000);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] = static_cast<std::byte>(version * 7 + rank * 3 + at / 1000);
  }
  return bytes;
}

class Durable : public ::testing::Test {
 protected:
  Durable() { EXPECT_TRUE(disk_.make_directories(shared).ok()); }
  ~Durable() override { std::filesystem::remove_all(locks_); }

  // A new agent, and a run of the job on it.
  void start(DurableSettings settings = {.dir = shared}, io::FaultPlan plan = {}) {
    agent_.reset();
    faults_ = std::make_shared<io::Faults>(plan);
    faulty_ = io::make_faulty_filesystem(disk_, faults_);
    DrainWorld world;
    world.local_dir = local;
    world.open_tier = [this](const std::string& dir) -> Result<std::unique_ptr<tier::Tier>> {
      if (!disk_.list(dir).ok()) return Error(Code::io, dir + " is no directory");
      return dir == shared ? open(*faulty_, dir, faults_) : open(disk_, dir);
    };
    world.open_durable = world.open_tier;
    world.lock = [this](const std::string& dir) -> Result<store::HeldLock> {
      EXPECT_TRUE(disk_.list(dir).ok()) << dir << " would be made by the lock";
      if (locked_) return Error(Code::busy, "another agent serves it");
      return store::HeldLock();
    };
    world.lock_live = [this](const std::string& dir) {
      EXPECT_TRUE(disk_.list(dir).ok()) << dir << " would be made by the lock";
      return store::lock_live(locks_, "job");
    };
    agent_ = std::make_unique<JobHarness>(
        32, [this] { return open(disk_, local); }, JobHarness::Threads::none, std::move(world));
    agent_->durable = std::move(settings);
    agent_->join_all(ranks);
  }
  Result<std::unique_ptr<tier::Tier>> open(
      io::FileSystem& files, const std::string& dir,
      std::shared_ptr<io::Faults> faults = std::make_shared<io::Faults>()) {
    auto make_ring = [calls = std::move(faults)]() -> Result<std::unique_ptr<io::Ring>> {
      return io::make_faulty_ring(io::make_memory_ring({.depth = 4}), calls);
    };
    return tier::open_dir_tier(files, make_ring, {.root = dir});
  }
  void take(VersionNumber version) {
    ASSERT_EQ(agent_->capture(ranks, version, [&](Rank rank) { return data(version, rank); }).code,
              Code::ok);
    agent_->run_until_idle();
  }
  JobHarness::Back restart() {
    const JobHarness::Back back = agent_->restart(ranks);
    if (back.code == Code::ok) {
      for (Rank rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(back.data.at(rank), data(back.version, rank)) << "rank " << rank;
      }
    }
    return back;
  }
  std::vector<VersionNumber> there(const std::string& dir = shared) {
    std::vector<VersionNumber> numbers;
    const auto tier = open(disk_, dir);
    const auto found = store::scan(**tier, "job").value();
    for (const StoredVersion& stored : found) {
      if (stored.good()) numbers.push_back(stored.version);
    }
    return numbers;
  }
  // What the program hears beside "captured".
  std::string said_to_program(VersionNumber version) {
    const auto bytes = [&](Rank rank) { return data(version, rank); };
    const std::string said = agent_->capture(ranks, version, bytes).message;
    agent_->run_until_idle();
    return said;
  }
  void lose(const std::string& dir) { ASSERT_TRUE((*open(disk_, dir))->remove("job").ok()); }
  void flip(const std::string& dir, VersionNumber version, std::size_t at = 5000) {
    const std::string path =
        dir + "/" + format::segment_name(format::version_folder("job", version), 0);
    Buffer bytes = io::read_file(disk_, path, 1 << 20).value();
    bytes.at(at) ^= std::byte{1};
    ASSERT_TRUE(io::publish_file(disk_, path, bytes).ok());
  }
  Level level(VersionNumber version) { return agent_->job().level_of(version).level; }
  wire::LevelIs waited(VersionNumber version) {
    agent_->receive(0, wire::Await{version, Level::durable});
    agent_->run_until_idle();
    return agent_->has<wire::LevelIs>(0) ? agent_->take<wire::LevelIs>(0) : wire::LevelIs{};
  }

  io::MemoryFileSystem disk_;
  std::shared_ptr<io::Faults> faults_;
  std::unique_ptr<io::FileSystem> faulty_;
  bool locked_ = false;
  const std::filesystem::path locks_ =
      std::filesystem::temp_directory_path() / ("backstay-durable-" + std::to_string(::getpid()));
  std::unique_ptr<JobHarness> agent_;
};

using Numbers = std::vector<VersionNumber>;

TEST_F(Durable, TheProgramAndStatusHearOfADirectoryThatCannotBeUsed) {
  start({.dir = "/nowhere"});
  const std::string why = "the durable directory /nowhere cannot be used: /nowhere is no directory";
  EXPECT_EQ(said_to_program(1), why);
  EXPECT_EQ(said_to_program(2), "") << "once";
  const std::vector<Warning> all = warnings(agent_->job().state());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].text, why);
}

TEST_F(Durable, TheProgramHearsOfCopiesThatFailUntilOneSucceeds) {
  start();
  locked_ = true;
  EXPECT_EQ(said_to_program(1), "");
  const std::string said = said_to_program(2);
  EXPECT_TRUE(said.starts_with("version 1 could not be copied to /shared: ")) << said;
  EXPECT_EQ(said_to_program(3), "");
  locked_ = false;
  EXPECT_EQ(said_to_program(4), "");
  EXPECT_EQ(level(4), Level::durable);
  locked_ = true;
  EXPECT_EQ(said_to_program(5), "");
  EXPECT_TRUE(said_to_program(6).starts_with("version 5 "));
}

TEST_F(Durable, EveryVersionBecomesDurableAndOldOnesGo) {
  start();
  for (VersionNumber version = 1; version <= 4; ++version) {
    take(version);
    EXPECT_EQ(level(version), Level::durable);
  }
  EXPECT_EQ(there(), (Numbers{3, 4}));
  EXPECT_EQ(level(1), Level::none);
}

TEST_F(Durable, NothingIsCopiedWithoutADirectory) {
  start({});
  take(1);
  EXPECT_EQ(level(1), Level::local);
  EXPECT_EQ(waited(1).code, Code::unsupported);
  EXPECT_EQ(there(), Numbers{});
}

TEST_F(Durable, EveryNthVersionAndThoseThatSomebodyWaitsFor) {
  start({.dir = shared, .every = 3, .keep = 5});
  for (VersionNumber version = 1; version <= 4; ++version) take(version);
  EXPECT_EQ(there(), (Numbers{3}));
  EXPECT_EQ(waited(4).level, Level::durable);
  take(5), take(6), take(7);
  EXPECT_EQ(there(), (Numbers{3, 4, 7}));
}

TEST_F(Durable, AToolWaitsForANewerVersion) {
  start({.dir = shared, .every = 10});
  take(1);
  const ConnectionId tool = JobHarness::connection(50);
  agent_->job().await_newer(tool, {"job", "/unused", 1, Level::durable});
  agent_->run_until_idle();
  EXPECT_FALSE(agent_->has<wire::Answer>(50));
  take(2);
  EXPECT_EQ(agent_->take<wire::Answer>(50).code, Code::ok);
  EXPECT_EQ(there(), (Numbers{2}));
}

TEST_F(Durable, TheNodesDiskIsLost) {
  start();
  take(1), take(2);
  agent_.reset();
  lose(local);
  start();
  EXPECT_EQ(agent_->welcome().newest, 2u);
  const auto back = restart();
  EXPECT_EQ(back.version, 2u);
  EXPECT_FALSE(back.from_pool);
  take(3);
  EXPECT_EQ(level(3), Level::durable);
}

TEST_F(Durable, AVersionThatIsDamagedOnTheDiskComesFromThere) {
  start();
  take(1), take(2);
  agent_.reset();
  flip(local, 2);
  start();
  EXPECT_EQ(restart().version, 2u) << "not the older one of the disk";
}

TEST_F(Durable, DamagedInBothPlacesTheOlderOneIsTaken) {
  start();
  take(1), take(2);
  agent_.reset();
  flip(local, 2), flip(shared, 2), flip(local, 1);
  start();
  EXPECT_EQ(restart().version, 1u);
}

TEST_F(Durable, ADamagedVersionNeverBecomesDurable) {
  start({});
  take(1), take(2);
  agent_.reset();
  flip(local, 2);
  start();
  agent_->run_until_idle();
  EXPECT_EQ(there(), (Numbers{1})) << "the older one instead";
  EXPECT_EQ(there(local), (Numbers{1})) << "it was set aside";
  EXPECT_EQ(restart().version, 1u);
}

TEST_F(Durable, WhatThePoolHasIsNotReadFromTheDisk) {
  start({.dir = shared, .every = 10});
  take(1);
  flip(local, 1);
  EXPECT_EQ(waited(1).level, Level::durable);
  agent_.reset();
  lose(local);
  start();
  EXPECT_EQ(restart().version, 1u);
}

TEST_F(Durable, WhatWasLeftIsCopiedByTheNextRun) {
  start({});
  take(1);
  start();
  agent_->run_until_idle();
  EXPECT_EQ(there(), (Numbers{1}));
}

TEST_F(Durable, EveryCallOnSharedStorageFailsOnce) {
  for (const io::Fault fault : {io::Fault::io, io::Fault::no_space, io::Fault::permission}) {
    for (std::uint64_t at = 1;; ++at) {
      disk_.~MemoryFileSystem();
      new (&disk_) io::MemoryFileSystem();
      ASSERT_TRUE(disk_.make_directories(shared).ok());
      start({.dir = shared}, {fault, at});
      take(1), take(2);
      const bool struck = !faults_->chosen().empty();
      const std::string where = faults_->chosen();
      const Level told = level(2);
      EXPECT_GE(told, Level::local) << where;
      if (!struck) break;
      take(3);
      EXPECT_EQ(level(3), Level::durable) << "the next one is tried again after " << where;
      agent_.reset();
      lose(local);
      start();
      EXPECT_EQ(restart().version, 3u) << where;
      if (HasFailure()) return;
    }
  }
}

TEST_F(Durable, AMissingDirectoryIsAnErrorAndNeverMade) {
  start({.dir = "/gone"});
  EXPECT_EQ(agent_->restart(ranks).code, Code::io) << "not the time to begin anew";
  take(1);
  EXPECT_EQ(level(1), Level::local);
  EXPECT_EQ(waited(1).code, Code::io);
  EXPECT_FALSE(disk_.list("/gone").ok());
}

// Mounted late.
TEST_F(Durable, ADirectoryThatAppearsLaterIsUsedFromThenOn) {
  const std::string late = "/late";
  start({.dir = late});
  take(1);
  EXPECT_EQ(waited(1).code, Code::io);
  ASSERT_TRUE(disk_.make_directories(late).ok());
  for (VersionNumber version = 2; version <= 5; ++version) {
    take(version);
    EXPECT_EQ(level(version), Level::durable);
  }
  EXPECT_EQ(there(late), (Numbers{4, 5}));
  lose(local);
  start({.dir = late});
  EXPECT_EQ(restart().version, 5u);
}

TEST_F(Durable, WaitingForOneThatWasLeftOutEndsOnceItIsNotTriedAnyMore) {
  locked_ = true;
  start();
  take(1), take(2);
  EXPECT_EQ(waited(2).code, Code::busy);
  EXPECT_EQ(waited(1).code, Code::busy) << "it was tried before";
}

TEST_F(Durable, AnotherAgentWritesThere) {
  locked_ = true;
  start();
  take(1);
  EXPECT_EQ(level(1), Level::local);
  EXPECT_EQ(waited(1).code, Code::busy);
  locked_ = false;
  take(2);
  EXPECT_EQ(level(2), Level::durable);
}

TEST_F(Durable, AProgramOfThatNameLivesElsewhere) {
  auto elsewhere = store::lock_live(locks_, "job").value();
  start();
  take(1);
  EXPECT_EQ(level(1), Level::local);
  EXPECT_EQ(waited(1).code, Code::busy);
  const std::string said = said_to_program(2);
  EXPECT_NE(said.find("another program of job job lives on"), std::string::npos) << said;
  EXPECT_EQ(there(), Numbers{});
  elsewhere.reset();
  take(3);
  EXPECT_EQ(level(3), Level::durable);
}

TEST_F(Durable, AProgramThatLivesKeepsOthersAwayAndOneThatEndedDoesNot) {
  start();
  EXPECT_TRUE(store::lock_live(locks_, "job").ok()) << "nothing was copied yet";
  take(1);
  EXPECT_EQ(store::lock_live(locks_, "job").error().code(), Code::busy);
  agent_->leave(0);
  EXPECT_EQ(store::lock_live(locks_, "job").error().code(), Code::busy);
  agent_->leave(1);
  agent_->run_until_idle();
  EXPECT_TRUE(store::lock_live(locks_, "job").ok());
}

TEST_F(Durable, TheDiskIsLeftToANewVersion) {
  start({});
  take(1);
  start();
  agent_->run_until("copy begins", [&] { return agent_->job().copying() == 1; });
  agent_->begin(0, 2, data(2, 0));
  for (int turn = 0; turn < 200; ++turn) agent_->step();
  EXPECT_EQ(there(), Numbers{}) << "it stands still";
  agent_->begin(1, 2, data(2, 1));
  agent_->run_until("sent", [&] { return agent_->sent_all(0) && agent_->sent_all(1); });
  agent_->end(0), agent_->end(1);
  EXPECT_EQ(agent_->captured(ranks).code, Code::ok);
  agent_->run_until_idle();
  EXPECT_EQ(there(), (Numbers{1, 2}));
}

}  // namespace
}  // namespace backstay::agent
