// Locks that others remove below the one who holds them.
#include "store/job_lock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>

#include "store/guarded_tier.h"
#include "tier/memory.h"

namespace backstay::agent {
namespace {

namespace fs = std::filesystem;

class JobLocks : public ::testing::Test {
 protected:
  Code code_of_another() {
    const auto other = store::lock_job(dir_, "job");
    return other.ok() ? Code::ok : other.error().code();
  }
  void remove_lock() { ASSERT_TRUE(fs::remove(dir_ + "/job/lock")); }
  // As of an agent on a file system that cannot lock a folder, or on another folder of that name.
  void another_agents_lock() {
    fs::create_directories(dir_ + "/job");
    other_ = Fd(::open((dir_ + "/job/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::flock(other_.get(), LOCK_EX | LOCK_NB), 0);
  }

  void SetUp() override {
    std::string name = ::testing::TempDir() + "backstay-lock-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string dir_;
  Fd other_;
};

TEST_F(JobLocks, ARemovedFileLetsNobodyIn) {
  const store::HeldLock held = store::lock_job(dir_, "job").value();
  remove_lock();
  EXPECT_EQ(store::check_unlocked(dir_, "job").error().code(), Code::busy);
  EXPECT_EQ(code_of_another(), Code::busy);
}

TEST_F(JobLocks, ARemovedFileIsMadeAgain) {
  store::HeldLock held = store::lock_job(dir_, "job").value();
  fs::remove(dir_ + "/job/lock");
  EXPECT_TRUE(held->found()) << "by its folder";
  EXPECT_TRUE(held->check().ok());
  EXPECT_TRUE(held->found());
  const Fd file(::open((dir_ + "/job/lock").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_NE(::flock(file.get(), LOCK_SH | LOCK_NB), 0) << "the new one is locked";
  held.reset();
  EXPECT_EQ(code_of_another(), Code::ok);
}

// `rm lock; touch lock`, a synchronised copy: the folder's lock says that no agent came meanwhile.
TEST_F(JobLocks, AFileThatNobodyHoldsIsLocked) {
  const store::HeldLock held = store::lock_job(dir_, "job").value();
  remove_lock();
  std::ofstream(dir_ + "/job/lock") << "1 elsewhere\n";
  EXPECT_TRUE(held->check().ok());
  EXPECT_TRUE(held->found());
  const Fd file(::open((dir_ + "/job/lock").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_NE(::flock(file.get(), LOCK_SH | LOCK_NB), 0);
}

TEST_F(JobLocks, WhatIsNoFileInItsPlaceKeepsNobodyFromWriting) {
  const std::string path = dir_ + "/job/lock";
  const store::HeldLock held = store::lock_job(dir_, "job").value();
  const std::array<std::function<void()>, 4> things = {
      [&] { fs::create_directory(path); },
      [&] { fs::create_symlink("elsewhere", path); },
      [&] { fs::create_symlink("lock", path); },
      [&] { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); },
  };
  for (std::size_t i = 0; i < things.size(); ++i) {
    SCOPED_TRACE(i);
    fs::remove(path);
    things[i]();
    EXPECT_TRUE(held->check().ok());
    EXPECT_TRUE(held->check().ok()) << "nor the second time";
    EXPECT_EQ(code_of_another(), Code::busy);
  }
  fs::remove(path);
  EXPECT_TRUE(held->check().ok());
  EXPECT_TRUE(fs::is_regular_file(path)) << "made again once the place is free";
}

TEST_F(JobLocks, WhatIsNoFileInItsPlaceIsNamedToWhoWantsIt) {
  const std::string path = dir_ + "/job/lock";
  fs::create_directories(dir_ + "/job");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // whose open() would wait for a writer
  EXPECT_EQ(code_of_another(), Code::config);
  EXPECT_TRUE(store::check_unlocked(dir_, "job").ok());
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_EQ(code_of_another(), Code::config);
}

TEST_F(JobLocks, ARemovedOrMovedFolderIsMadeAgain) {
  const store::HeldLock held = store::lock_job(dir_, "job").value();
  fs::remove_all(dir_ + "/job");
  EXPECT_FALSE(held->found());
  EXPECT_TRUE(held->check().ok());
  EXPECT_TRUE(held->found());
  EXPECT_EQ(code_of_another(), Code::busy);
  fs::rename(dir_ + "/job", dir_ + "/moved");
  EXPECT_TRUE(held->check().ok());
  EXPECT_EQ(code_of_another(), Code::busy);
  remove_lock();
  EXPECT_EQ(code_of_another(), Code::busy) << "the new folder is locked as the old one was";
}

TEST_F(JobLocks, AnotherAgentThatCameMeanwhileKeepsIt) {
  const store::HeldLock held = store::lock_job(dir_, "job").value();
  remove_lock();
  another_agents_lock();
  const Status lost = held->check();
  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error().code(), Code::busy);
  EXPECT_NE(lost.error().message().find(dir_ + "/job/lock"), std::string::npos);
  other_.reset();
  EXPECT_FALSE(held->check().ok()) << "what it has written since is not ours to write over";
}

TEST_F(JobLocks, AnotherAgentsFolderInTheSamePlaceIsLeftAlone) {
  const store::HeldLock held = store::lock_job(dir_, "job").value();
  fs::rename(dir_ + "/job", dir_ + "/moved");
  const auto second = store::lock_job(dir_, "job");
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(held->check().error().code(), Code::busy);
  EXPECT_TRUE((*second)->check().ok());
}

TEST_F(JobLocks, AnotherAgentsFolderIsLeftAloneAfterItsEnd) {
  const store::HeldLock held = store::lock_job(dir_, "job").value();
  fs::rename(dir_ + "/job", dir_ + "/moved");
  ASSERT_TRUE(store::lock_job(dir_, "job").ok());
  EXPECT_EQ(held->check().error().code(), Code::busy);
}

TEST_F(JobLocks, OfTheLiveOneTheSame) {
  const store::HeldLock held = store::lock_live(dir_, "job").value();
  const store::HeldLock beside = store::lock_job(dir_, "job").value();
  fs::remove(dir_ + "/job/live");
  EXPECT_TRUE(held->check().ok());
  EXPECT_EQ(store::lock_live(dir_, "job").error().code(), Code::busy);
  fs::remove(dir_ + "/job/live");
  std::ofstream(dir_ + "/job/live") << "1 elsewhere\n";
  EXPECT_EQ(held->check().error().code(), Code::busy);
}

TEST_F(JobLocks, AGuardedTierWritesNothingOnceTheyAreLost) {
  auto tier = store::guarded(tier::make_memory_tier(), store::lock_job(dir_, "job").value());
  const Buffer content(8);
  ASSERT_TRUE(tier->put("job/a", content).ok());
  remove_lock();
  another_agents_lock();
  EXPECT_EQ(tier->put("job/a", content).error().code(), Code::busy);
  EXPECT_EQ(tier->create("job/b", 8).error().code(), Code::busy);
  EXPECT_EQ(tier->remove("job/a").error().code(), Code::busy);
  EXPECT_EQ(tier->remove_if_empty("job").error().code(), Code::busy);
  EXPECT_TRUE(tier->get("job/a", 8).ok());
}

TEST_F(JobLocks, NoRecordIsPutWhereItsSegmentIsNot) {
  auto tier = store::guarded(tier::make_memory_tier(), store::lock_job(dir_, "job").value());
  const Buffer content(8);
  ASSERT_TRUE(tier->create("job/v1/segment", 8).ok());
  fs::rename(dir_ + "/job", dir_ + "/moved");
  const Status put = tier->put("job/v1/manifest", content);
  ASSERT_EQ(put.error().code(), Code::io);
  EXPECT_NE(put.error().message().find("job/v1"), std::string::npos) << put.error().message();
  ASSERT_TRUE(tier->create("job/v2/segment", 8).ok());
  EXPECT_TRUE(tier->put("job/v2/manifest", content).ok());
  EXPECT_FALSE(tier->put("job/v1/manifest", content).ok());
  ASSERT_TRUE(tier->create("job/v1/segment", 8).ok());
  EXPECT_TRUE(tier->put("job/v1/manifest", content).ok()) << "written again";
}

}  // namespace
}  // namespace backstay::agent
