// What only the real file system can show.
#include "io/posix.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "temp_directory.h"

namespace backstay::io {
namespace {

using namespace backstay::testing;

mode_t mode_of(const std::string& path) {
  struct stat facts {};
  EXPECT_EQ(::lstat(path.c_str(), &facts), 0) << path;
  return facts.st_mode & 07777;
}

TEST(Posix, ATreeThatIsALinkIsOnlyALink) {
  TempDirectory directory;
  FileSystem& fs = posix_filesystem();
  ASSERT_TRUE(is_ok(fs.make_directories(directory.path() + "/others")));
  ASSERT_TRUE(is_ok(publish_file(fs, directory.path() + "/others/precious", {})));
  ASSERT_EQ(::symlink("others", (directory.path() + "/ours").c_str()), 0);
  ASSERT_TRUE(is_ok(remove_tree(fs, directory.path() + "/ours")));
  EXPECT_EQ(fs.list(directory.path())->size(), 1u);
  EXPECT_EQ(fs.list(directory.path() + "/others")->size(), 1u);
}

TEST(Posix, NobodyElseMayLook) {
  TempDirectory directory;
  FileSystem& fs = posix_filesystem();
  const mode_t before = ::umask(0);
  ASSERT_TRUE(is_ok(fs.make_directories(directory.path() + "/a/b")));
  ASSERT_TRUE(is_ok(fs.open(directory.path() + "/a/b/f", Open::create)));
  ASSERT_TRUE(is_ok(fs.open(directory.path() + "/a/b/g", Open::reuse_direct)));
  ::umask(before);
  EXPECT_EQ(mode_of(directory.path() + "/a"), 0700u);
  EXPECT_EQ(mode_of(directory.path() + "/a/b"), 0700u);
  EXPECT_EQ(mode_of(directory.path() + "/a/b/f"), 0600u);
  EXPECT_EQ(mode_of(directory.path() + "/a/b/g"), 0600u);
}

TEST(Posix, DescriptorsAreNotInherited) {
  TempDirectory directory;
  auto file = posix_filesystem().open(directory.path() + "/f", Open::create_direct);
  ASSERT_TRUE(is_ok(file));
  EXPECT_NE(::fcntl((*file)->descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Posix, ALinkIsNotFollowedForWriting) {
  TempDirectory directory;
  const std::string victim = directory.path() + "/victim";
  const std::string link = directory.path() + "/link";
  ASSERT_TRUE(is_ok(publish_file(posix_filesystem(), victim, pattern(10, 1))));
  ASSERT_EQ(::symlink(victim.c_str(), link.c_str()), 0);
  for (const Open how : {Open::create, Open::create_direct, Open::reuse_direct}) {
    EXPECT_FALSE(posix_filesystem().open(link, how).ok());
  }
  EXPECT_EQ(*read_file(posix_filesystem(), victim, 10), pattern(10, 1));
}

// A backup by `cp -al` shares its files with the folder of the versions.
TEST(Posix, AFileWithASecondNameIsNotWrittenInto) {
  TempDirectory directory;
  FileSystem& fs = posix_filesystem();
  const std::string backup = directory.path() + "/backup";
  const std::string ours = directory.path() + "/ours";
  ASSERT_TRUE(is_ok(publish_file(fs, backup, pattern(4096, 1))));
  for (const Open how : {Open::create, Open::create_direct, Open::reuse_direct}) {
    ASSERT_EQ(::link(backup.c_str(), ours.c_str()), 0);
    auto file = fs.open(ours, how);
    ASSERT_TRUE(is_ok(file));
    ASSERT_TRUE(is_ok((*file)->truncate(8192)));
    EXPECT_EQ(*read_file(fs, backup, 8192), pattern(4096, 1));
    EXPECT_EQ(read_file(fs, ours, 8192)->size(), 8192u);
    ASSERT_TRUE(is_ok(fs.remove(ours)));
  }
}

TEST(Posix, RemoveTreeDoesNotFollowLinks) {
  TempDirectory directory;
  FileSystem& fs = posix_filesystem();
  ASSERT_TRUE(is_ok(fs.make_directories(directory.path() + "/keep")));
  ASSERT_TRUE(is_ok(publish_file(fs, directory.path() + "/keep/f", pattern(10, 1))));
  ASSERT_TRUE(is_ok(fs.make_directories(directory.path() + "/go")));
  const std::string link = directory.path() + "/go/link";
  ASSERT_EQ(::symlink((directory.path() + "/keep").c_str(), link.c_str()), 0);
  ASSERT_TRUE(is_ok(remove_tree(fs, directory.path() + "/go")));
  EXPECT_TRUE(is_ok(read_file(fs, directory.path() + "/keep/f", 10)));
}

TEST(Posix, DirectIsTheFlagOfTheDescriptor) {
  TempDirectory directory;
  const auto buffered = make_posix_filesystem({.direct = false});
  for (const Open how : {Open::create_direct, Open::reuse_direct, Open::read_direct}) {
    auto file = posix_filesystem().open(directory.path() + "/f", how);
    ASSERT_TRUE(is_ok(file));
    const bool flag = (::fcntl((*file)->descriptor(), F_GETFL) & O_DIRECT) != 0;
    EXPECT_EQ((*file)->direct(), flag);
    auto other = buffered->open(directory.path() + "/f", how);
    ASSERT_TRUE(is_ok(other));
    EXPECT_FALSE((*other)->direct());
    EXPECT_EQ(::fcntl((*other)->descriptor(), F_GETFL) & O_DIRECT, 0);
  }
}

// procfs refuses O_DIRECT, so this opens the second way.
TEST(Posix, WhereDirectIsRefusedTheFileIsBuffered) {
  const int probe = ::open("/proc/self/status", O_RDONLY | O_DIRECT | O_CLOEXEC);
  if (probe >= 0) {
    ::close(probe);
    GTEST_SKIP() << "this kernel opens everything with O_DIRECT";
  }
  auto file = posix_filesystem().open("/proc/self/status", Open::read_direct);
  ASSERT_TRUE(is_ok(file));
  EXPECT_FALSE((*file)->direct());
  Buffer some(10);
  EXPECT_TRUE(is_ok((*file)->read_at(0, some)));
}

TEST(Posix, AllocateTakesBlocksAndZerosThem) {
  TempDirectory directory;
  auto file = posix_filesystem().open(directory.path() + "/f", Open::create);
  ASSERT_TRUE(is_ok(file));
  ASSERT_TRUE(is_ok((*file)->allocate(1 << 20)));
  struct stat facts {};
  ASSERT_EQ(::fstat((*file)->descriptor(), &facts), 0);
  if (facts.st_size == 0) GTEST_SKIP() << "this file system cannot reserve";
  EXPECT_GE(facts.st_blocks * 512, 1 << 20);
  Buffer back(1 << 20, std::byte{1});
  ASSERT_TRUE(is_ok((*file)->read_at(0, back)));
  EXPECT_EQ(back, Buffer(1 << 20));
}

// A file size limit makes the kernel write short and then fail: the part before the limit is
// written by a first call, and the continuation gets EFBIG.
TEST(Posix, AShortWriteIsContinuedAndItsErrorReported) {
  TempDirectory directory;
  auto file = posix_filesystem().open(directory.path() + "/f", Open::create);
  ASSERT_TRUE(is_ok(file));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{10'000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status written = (*file)->write_at(0, pattern(20'000, 1));
  const Status reserved = (*file)->allocate(20'000);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, old);
  ASSERT_TRUE(fails_with(written, Code::io));
  EXPECT_EQ(written.error().sys_errno(), EFBIG);
  EXPECT_TRUE(fails_with(reserved, Code::io));
  EXPECT_EQ(*(*file)->size(), 10'000u);
  Buffer back(10'000);
  ASSERT_TRUE(is_ok((*file)->read_at(0, back)));
  EXPECT_EQ(first_difference(back, 1), back.size());
}

TEST(Posix, PermissionIsNamed) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may do everything";
  TempDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0500), 0);
  const auto denied = posix_filesystem().open(directory.path() + "/f", Open::create);
  EXPECT_TRUE(fails_with(denied, Code::permission));
  ::chmod(directory.path().c_str(), 0700);
}

// Opening it to read would wait for a writer.
TEST(Posix, APipeInAFilesPlaceIsDamage) {
  TempDirectory directory;
  const std::string path = directory.path() + "/file";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  for (const io::Open how : {io::Open::read, io::Open::read_direct}) {
    const auto file = io::posix_filesystem().open(path, how);
    ASSERT_FALSE(file.ok());
    EXPECT_EQ(file.error().code(), Code::corrupt);
  }
}

}  // namespace
}  // namespace backstay::io
