#include "capture/mount/holders.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "base/fd.h"

namespace backstay::mount {
namespace {

std::string stat_with(const std::string& name, unsigned flags, int exit_code) {
  return "12 (" + name + ") R 1 2 3 0 -1 " + std::to_string(flags) + " 0 0 0 " +
         std::to_string(exit_code) + "\n";
}

TEST(Holders, TellDeathBySignalOfAProcessThatEnds) {
  EXPECT_TRUE(tells_death_by_signal(stat_with("dd", 0x40000c, SIGKILL)));
  EXPECT_TRUE(tells_death_by_signal(stat_with("dd", 0x40000c, SIGSEGV | 0x80)));
  EXPECT_FALSE(tells_death_by_signal(stat_with("dd", 0x40000c, 0)));
  EXPECT_FALSE(tells_death_by_signal(stat_with("dd", 0x40000c, 3 << 8)));
  EXPECT_FALSE(tells_death_by_signal(stat_with("dd", 0x400000, SIGKILL)));
  EXPECT_TRUE(tells_death_by_signal(stat_with("a) R 1 (b", 0x40000c, SIGTERM)));
  EXPECT_FALSE(tells_death_by_signal(""));
  EXPECT_FALSE(tells_death_by_signal("12 (dd"));
}

TEST(Holders, TellWhoHoldsAFileForWriting) {
  const std::string written = "pos:\t0\nflags:\t0100001\nmnt_id:\t28\nino:\t77\n";
  EXPECT_TRUE(tells_writer_of(written, 77));
  EXPECT_FALSE(tells_writer_of(written, 7));
  EXPECT_FALSE(tells_writer_of("pos:\t0\nflags:\t0100000\nmnt_id:\t28\nino:\t77\n", 77));
  EXPECT_FALSE(tells_writer_of("", 77));
}

TEST(Holders, LookAtThisProcess) {
  std::string name = testing::TempDir() + "holders-XXXXXX";
  Fd file(::mkstemp(name.data()));
  ASSERT_TRUE(file.valid());
  struct stat found = {};
  ASSERT_EQ(::fstat(file.get(), &found), 0);
  EXPECT_TRUE(holds_for_writing(::getpid(), found.st_ino));
  file.reset(::open(name.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(holds_for_writing(::getpid(), found.st_ino));
  EXPECT_FALSE(dies_by_signal(::getpid()));
  EXPECT_FALSE(holds_for_writing(0, found.st_ino));
  ::unlink(name.c_str());
}

// A child that was killed and not waited for shows what a process that ends shows.
TEST(Holders, SeeAChildThatWasKilled) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::kill(::getpid(), SIGKILL);
    ::_exit(0);
  }
  siginfo_t ended = {};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(dies_by_signal(child));
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace backstay::mount
