#include "capture/mount/mounts.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "capture/mount/record.h"

namespace backstay::mount {
namespace {

TEST(Mounts, AreThoseOfThisKind) {
  const auto found = mounts_in(
      "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
      "40 22 0:41 / /mnt/a\\040b rw,nosuid shared:5 master:2 - fuse.backstay /scratch/me "
      "rw,user_id=0\n"
      "41 22 0:42 / /mnt/other rw - fuse.sshfs host:/ rw\n");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].id, "40");
  EXPECT_EQ(found[0].folder, "/mnt/a b");
  EXPECT_EQ(found[0].target, "/scratch/me");
  EXPECT_TRUE(mounts_in("").empty());
  EXPECT_TRUE(mounts_in("40 22\n- \n").empty());
}

TEST(Mounts, AFolderThatAnswersIsNotDead) { EXPECT_FALSE(is_dead("/")); }

volatile std::sig_atomic_t told = 0;  // to end

TEST(Record, IsLockedAndReadBack) {
  std::string folder = testing::TempDir() + "record-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string path = record_path(folder, "/mnt/a");
  EXPECT_NE(path, record_path(folder, "/mnt/b"));
  EXPECT_EQ(read_record(path).error().code(), Code::not_found);
  EXPECT_TRUE(end_daemon(path, 0.01));
  {
    const auto held = write_record(path, {::getpid(), "job", "/mnt/a", "/scratch", "/store"});
    ASSERT_TRUE(held.ok());
    const Record other{1, "job", "/mnt/a", "/scratch", "/store"};
    EXPECT_EQ(write_record(path, other).error().code(), Code::busy);
    const auto read = read_record(path);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(read->pid, ::getpid());
    EXPECT_EQ(read->job, "job");
    EXPECT_EQ(read->folder, "/mnt/a");
    EXPECT_EQ(read->target, "/scratch");
    EXPECT_EQ(read->store, "/store");
    ::signal(SIGTERM, [](int) { told = told + 1; });
    EXPECT_FALSE(end_daemon(path, 0.01));
    ::signal(SIGTERM, SIG_DFL);
    EXPECT_EQ(told, 1);
  }
  EXPECT_TRUE(end_daemon(path, 0.01));
  ::unlink(path.c_str());
  ::rmdir(folder.c_str());
}

}  // namespace
}  // namespace backstay::mount
