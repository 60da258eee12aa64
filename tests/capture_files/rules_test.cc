// Which opens make a memory file. The guide has the same rules in words.
#include "capture/files/rules.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace backstay::files {
namespace {

TEST(Flags, OnlyWhatWritesAndCreatesOrTruncates) {
  EXPECT_TRUE(flags_allow(O_WRONLY | O_CREAT));
  EXPECT_TRUE(flags_allow(O_RDWR | O_TRUNC));
  EXPECT_TRUE(flags_allow(O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW));
  EXPECT_FALSE(flags_allow(O_RDONLY | O_CREAT));
  EXPECT_FALSE(flags_allow(O_RDWR));
  EXPECT_FALSE(flags_allow(O_WRONLY | O_CREAT | O_APPEND));
  EXPECT_FALSE(flags_allow(O_RDWR | O_TMPFILE));
  EXPECT_FALSE(flags_allow(O_PATH | O_CREAT));
  for (const int flag : {O_SYNC, O_DSYNC, O_DIRECT, O_ASYNC, O_DIRECTORY}) {
    EXPECT_FALSE(flags_allow(O_WRONLY | O_CREAT | flag)) << flag;
  }
}

Found plain(off_t size) {
  Found found;
  found.stat = {};
  found.stat.st_mode = S_IFREG | 0644;
  found.stat.st_nlink = 1;
  found.stat.st_size = size;
  found.ordinary_system = true;
  return found;
}

TEST(File, AnEmptyOneOrOneThatIsTruncated) {
  EXPECT_TRUE(file_allows(plain(0), O_WRONLY | O_CREAT));
  EXPECT_TRUE(file_allows(plain(5), O_WRONLY | O_TRUNC));
  EXPECT_FALSE(file_allows(plain(5), O_WRONLY | O_CREAT));
}

TEST(File, NoneThatOthersCouldSee) {
  Found found = plain(0);
  found.open_elsewhere = true;
  EXPECT_FALSE(file_allows(found, O_WRONLY | O_CREAT));
  found = plain(0);
  found.stat.st_nlink = 2;
  EXPECT_FALSE(file_allows(found, O_WRONLY | O_CREAT));
}

TEST(File, NoneThatIsNoOrdinaryFile) {
  Found found = plain(0);
  found.ordinary_system = false;
  EXPECT_FALSE(file_allows(found, O_WRONLY | O_CREAT));
  for (const mode_t kind : {S_IFDIR, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK}) {
    found = plain(0);
    found.stat.st_mode = kind | 0644;
    EXPECT_FALSE(file_allows(found, O_WRONLY | O_CREAT)) << kind;
  }
  found = plain(0);
  found.stat.st_mode = S_IFREG | S_ISUID | 0755;
  EXPECT_FALSE(file_allows(found, O_WRONLY | O_CREAT));
}

TEST(Joining, NotWhereEachWriteHasToReachTheDisk) {
  EXPECT_TRUE(flags_can_join(O_RDONLY));
  EXPECT_TRUE(flags_can_join(O_RDWR | O_APPEND));
  EXPECT_FALSE(flags_can_join(O_WRONLY | O_SYNC));
  EXPECT_FALSE(flags_can_join(O_RDONLY | O_DIRECT));
  EXPECT_FALSE(flags_can_join(O_ACCMODE));
  EXPECT_EQ(memory_flags(O_WRONLY | O_CREAT | O_TRUNC | O_APPEND), O_WRONLY | O_APPEND);
}

}  // namespace
}  // namespace backstay::files
