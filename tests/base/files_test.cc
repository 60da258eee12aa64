// Folders and programs as the file system has them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/folders.h"
#include "base/program.h"

namespace backstay {
namespace {

namespace fs = std::filesystem;

class FilesTest : public ::testing::Test {
 public:
  FilesTest() {
    std::string name = ::testing::TempDir() + "backstay-files-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~FilesTest() override { fs::remove_all(root_); }

 protected:
  std::string root_;
};

TEST(ParentOf, IsTheFolderAbove) {
  EXPECT_EQ(parent_of("a/b/c"), "a/b");
  EXPECT_EQ(parent_of("a/b//c"), "a/b");
  EXPECT_EQ(parent_of("a/b/"), "a");
  EXPECT_EQ(parent_of("c"), ".");
  EXPECT_EQ(parent_of("/c"), "/");
  EXPECT_EQ(parent_of("/"), "/");
  EXPECT_EQ(parent_of("."), ".");
}

TEST_F(FilesTest, MakeFoldersTellsWhichItMade) {
  fs::create_directory(root_ + "/a");
  std::vector<std::string> made;
  ASSERT_TRUE(make_folders(root_ + "/a/b/c", &made).ok());
  EXPECT_EQ(made, (std::vector<std::string>{root_ + "/a/b", root_ + "/a/b/c"}));
  EXPECT_EQ(fs::status(root_ + "/a/b").permissions(), fs::perms::owner_all);
  EXPECT_TRUE(make_folders(root_ + "/a/b/c", &made).ok());
  EXPECT_EQ(made.size(), 2u);
}

TEST_F(FilesTest, MakeFoldersTakesNoFileForAFolder) {
  std::ofstream(root_ + "/file") << "";
  for (const char* below : {"/file", "/file/x"}) {
    const Status made = make_folders(root_ + below);
    ASSERT_FALSE(made.ok()) << below;
    EXPECT_EQ(made.error().sys_errno(), ENOTDIR);
    EXPECT_NE(made.error().message().find(root_ + "/file"), std::string::npos);
  }
}

TEST_F(FilesTest, FindProgramTakesTheFirstThatMayBeExecuted) {
  for (const char* folder : {"/no", "/yes"}) {
    fs::create_directory(root_ + folder);
    std::ofstream(root_ + folder + "/prog") << "#!/bin/sh\n";
  }
  ASSERT_EQ(::chmod((root_ + "/yes/prog").c_str(), 0700), 0);
  const char* path = std::getenv("PATH");
  const std::string before = path == nullptr ? "" : path;
  ::setenv("PATH", (root_ + "/none:" + root_ + "/no:" + root_ + "/yes").c_str(), 1);
  EXPECT_EQ(find_program("prog"), root_ + "/yes/prog");
  EXPECT_EQ(find_program("other"), "");
  EXPECT_EQ(find_program(root_ + "/no/prog"), "");
  EXPECT_EQ(find_program(root_ + "/yes/prog"), root_ + "/yes/prog");
  EXPECT_EQ(find_program(""), "");
  ::setenv("PATH", before.c_str(), 1);
}

}  // namespace
}  // namespace backstay
