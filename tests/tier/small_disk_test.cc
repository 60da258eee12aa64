// A real full disk: a file system of one MiB, mounted in a namespace of this process's own.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "io/posix.h"
#include "temp_directory.h"
#include "tier/dir.h"

namespace backstay::testing {
namespace {

constexpr std::uint64_t disk_bytes = 1 << 20;

// Without privileges a mount namespace needs a user namespace, in which we are root.
bool own_namespace() {
  if (::unshare(CLONE_NEWNS) == 0) return true;
  const uid_t user = ::geteuid();
  const gid_t group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  std::ofstream("/proc/self/setgroups") << "deny";
  std::ofstream("/proc/self/uid_map") << "0 " << user << " 1";
  std::ofstream("/proc/self/gid_map") << "0 " << group << " 1";
  return ::geteuid() == 0;
}

class SmallDisk : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    available_ =
        own_namespace() && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }
  void SetUp() override {
    const char* size = "size=1m";
    if (!available_ ||
        ::mount("backstay", directory_.path().c_str(), "tmpfs", MS_NOSUID | MS_NODEV, size) != 0) {
      GTEST_SKIP() << "no mount namespace here";
    }
    mounted_ = true;
    const auto make_ring = [] { return io::make_ring({.depth = 4}, nullptr); };
    auto tier = tier::open_dir_tier(io::posix_filesystem(), make_ring,
                                    {.root = directory_.path() + "/tier", .recycle = true});
    ASSERT_TRUE(is_ok(tier));
    tier_ = std::move(tier).value();
  }
  void TearDown() override {
    tier_.reset();
    if (mounted_) ::umount2(directory_.path().c_str(), MNT_DETACH);
  }
  std::uint64_t free_bytes() {
    struct statvfs facts {};
    EXPECT_EQ(::statvfs(directory_.path().c_str(), &facts), 0);
    return facts.f_bfree * facts.f_frsize;
  }

  static bool available_;
  TempDirectory directory_;
  bool mounted_ = false;
  std::unique_ptr<tier::Tier> tier_;
};

bool SmallDisk::available_ = false;

TEST_F(SmallDisk, CreateFailsCleanly) {
  const std::uint64_t before = free_bytes();
  EXPECT_TRUE(fails_with(tier_->create("job/v1/seg", 2 * disk_bytes), Code::no_space));
  EXPECT_TRUE(tier_->list("job/v1")->empty());
  EXPECT_GE(free_bytes() + 3 * 4096, before) << "blocks of the failed file are gone";
  EXPECT_TRUE(is_ok(tier_->create("job/v1/seg", disk_bytes / 2)));
}

TEST_F(SmallDisk, AWriterThatWasNotReservedFailsAndSaysSo) {
  auto writer = tier_->create("job/v1/seg", 0);
  ASSERT_TRUE(is_ok(writer));
  AlignedBytes bytes(2 * disk_bytes);
  (*writer)->write(0, bytes.all(), 1);
  EXPECT_TRUE(fails_with((*writer)->reap(true).at(0).status, Code::no_space));
  EXPECT_TRUE(fails_with((*writer)->seal(2 * disk_bytes), Code::no_space));
  writer->reset();
  ASSERT_TRUE(is_ok(tier_->remove("job/v1")));
  EXPECT_TRUE(is_ok(tier_->put("job/v1/x", pattern(1000, 1))));
}

TEST_F(SmallDisk, PutLeavesTheOldOne) {
  ASSERT_TRUE(is_ok(tier_->put("job/x", pattern(disk_bytes / 2, 1))));
  EXPECT_TRUE(fails_with(tier_->put("job/x", pattern(disk_bytes * 3 / 4, 2)), Code::no_space));
  EXPECT_EQ(*tier_->get("job/x", disk_bytes), pattern(disk_bytes / 2, 1));
  EXPECT_EQ(tier_->list("job")->size(), 1u);
  EXPECT_TRUE(is_ok(tier_->put("job/y", pattern(disk_bytes / 4, 3))));
}

TEST_F(SmallDisk, ReadOnlyIsPermission) {
  ASSERT_TRUE(is_ok(tier_->put("job/x", pattern(10, 1))));
  ASSERT_EQ(::mount(nullptr, directory_.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr),
            0);
  const Status put = tier_->put("job/x", pattern(10, 2));
  EXPECT_TRUE(fails_with(put, Code::permission));
  EXPECT_TRUE(fails_with(tier_->create("job/y", 4096), Code::permission));
  EXPECT_FALSE(tier_->remove("job/x").ok());
  EXPECT_EQ(*tier_->get("job/x", 10), pattern(10, 1));
}

}  // namespace
}  // namespace backstay::testing
