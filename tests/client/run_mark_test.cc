#include "client/run_mark.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>

namespace backstay::client {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
constexpr RunId ours = 0x9fff'0000'0000'0007;

class RunMarkTest : public ::testing::Test {
 public:
  RunMarkTest() {
    std::string name = ::testing::TempDir() + "backstay-mark-XXXXXX";
    dir_ = ::mkdtemp(name.data());
    fs::create_directory(dir_ + "/job");
  }
  ~RunMarkTest() override {
    end_other();
    fs::remove_all(dir_);
  }

 protected:
  // A process of `run`, which has its mark when this returns.
  void start_other(RunId run) {
    std::array<int, 2> ready{};
    ASSERT_EQ(::pipe(ready.data()), 0);
    other_ = ::fork();
    if (other_ == 0) {
      RunMark mark(dir_, "job", run);
      mark.set();
      (void)!::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    ASSERT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  void end_other() {
    if (other_ == 0) return;
    ::kill(other_, SIGKILL);
    ::waitpid(other_, nullptr, 0);
    other_ = 0;
  }

  std::string dir_;
  pid_t other_ = 0;
};

TEST_F(RunMarkTest, AProcessOfAnotherRunIsSeenUntilItEnds) {
  for (const RunId run : {RunId{1}, ours - 1, ours + 1, UINT64_MAX}) {
    start_other(run);
    EXPECT_EQ(RunMark(dir_, "job", ours).other_run(), other_) << run;
    const Status refused = RunMark(dir_, "job", ours).refuse_other_run(0.01);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), Code::busy);
    EXPECT_THAT(refused.error().message(), HasSubstr("(kill " + std::to_string(other_) + ")"));
    end_other();
    EXPECT_EQ(RunMark(dir_, "job", ours).other_run(), 0);
  }
  EXPECT_TRUE(refuse_running(dir_, "job").ok());
  start_other(ours);
  EXPECT_FALSE(refuse_running(dir_, "job").ok());
}

TEST_F(RunMarkTest, ProcessesOfOneRunShareTheMark) {
  RunMark mine(dir_, "job", ours);
  mine.set();
  start_other(ours);
  EXPECT_TRUE(mine.refuse_other_run().ok());
  EXPECT_EQ(RunMark(dir_, "job", ours + 5).other_run(), other_);
}

// A helper that a rank forked and that outlives it must not keep the next run out.
TEST_F(RunMarkTest, AChildDoesNotHoldItsParentsMark) {
  RunMark mine(dir_, "job", ours);
  mine.set();
  const pid_t child = ::fork();
  if (child == 0) {
    RunMark other(dir_, "job", ours + 1);
    ::_exit(other.other_run() == ::getppid() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "the child sees its parent's, and has none of its own";
}

TEST_F(RunMarkTest, WhatCannotBeMarkedRunsWithoutAMark) {
  for (const char* job : {"missing", "link", "folder"}) {
    fs::create_symlink("/etc/passwd", dir_ + "/link");
    fs::create_directories(dir_ + "/folder/ranks");
    RunMark mark(dir_, job, ours);
    EXPECT_TRUE(mark.refuse_other_run().ok());
    mark.set();
    fs::remove(dir_ + "/link");
  }
}

}  // namespace
}  // namespace backstay::client
