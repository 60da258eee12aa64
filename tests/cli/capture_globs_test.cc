#include "bin/parts/capture_globs.h"

#include <gtest/gtest.h>

namespace backstay::bin {
namespace {

const CaptureFolders folders{"/home/me/job", {"/scratch/backstay", "", "/home/me/job/durable"}};

std::string absolute(const std::string& glob, const CaptureFolders& where = folders) {
  const auto result = absolute_globs({glob}, where);
  return result.ok() ? result->front() : "error: " + result.error().message();
}

TEST(CaptureGlobs, CountFromTheWorkingDirectory) {
  EXPECT_EQ(absolute("*.restart"), "/home/me/job/*.restart");
  EXPECT_EQ(absolute("out/*"), "/home/me/job/out/*");
  EXPECT_EQ(absolute("./out/a*.?"), "/home/me/job/out/a*.?");
  EXPECT_EQ(absolute("../other/state[0-9]"), "/home/me/other/state[0-9]");
  EXPECT_EQ(absolute("/data/*/run.*.h5"), "/data/*/run.*.h5");
  EXPECT_EQ(absolute("dump.bin"), "/home/me/job/dump.bin");
  EXPECT_EQ(absolute("*", {"/", {}}).substr(0, 6), "error:");
  EXPECT_EQ(absolute("a*", {"/", {}}), "/a*");
}

TEST(CaptureGlobs, TheWorkingDirectoryIsNoPattern) {
  EXPECT_EQ(absolute("*.x", {"/tmp/a[1]*?\\b", {}}), "/tmp/a[[]1][*][?]\\\\b/*.x");
  EXPECT_EQ(absolute("*", {"/tmp/a[1]", {}}).substr(0, 6), "error:");
}

TEST(CaptureGlobs, WhatMustNotBeCapturedIsRefusedWithWhatToWrite) {
  const auto refuses = [](const std::string& glob, const std::string& why) {
    const std::string said = absolute(glob);
    EXPECT_TRUE(said.starts_with("error: --capture-files '" + glob + "' ")) << glob << ": " << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
    EXPECT_NE(said.find("'*.restart'"), std::string::npos) << said;
  };
  for (const char* glob :
       {"*", "**", "./*", "?*", "/home/me/job/*", "../job/*", "/home/me/*/*", "/home/**", "../**"})
    refuses(glob, "every file of the working directory");
  refuses("/*", "system");  // "*" is "usr" too
  for (const char* glob : {"/usr/lib/*", "/usr/x", "/lib/*", "/lib64/a", "/etc/*.conf", "/bin/*",
                           "/u*/x", "/*/x", "/../usr/x", "/[a-z]*/x"})
    refuses(glob, "system");
  for (const char* glob : {"/proc/*", "/proc/self/maps", "/sys/x", "/dev/null", "/dev/shm/*"})
    refuses(glob, "below /");
  for (const char* glob :
       {"*.so", "lib*", "out/*.so", "out/lib*", "*.*", "plugin.so.3", "x/*.so.*"})
    refuses(glob, "libraries");
  refuses("/scratch/backstay/lj/*", "Backstay's own");
  refuses("durable/x*", "Backstay's own");
  refuses("", "is empty");
  refuses("out/", "is a folder");
  refuses("/", "is a folder");
  refuses("a\nb", "line break");
}

TEST(CaptureGlobs, WhatTheLibraryHasNoRoomForIsRefused) {
  const std::string wide(3000, 'a');
  EXPECT_TRUE(absolute_globs(std::vector<std::string>(20, wide), folders).ok());
  EXPECT_EQ(absolute_globs(std::vector<std::string>(22, wide), folders).error().code(),
            Code::too_large);
}

TEST(CaptureGlobs, OneWrongPatternOfSeveralIsFound) {
  EXPECT_FALSE(absolute_globs({"*.restart", "/proc/*"}, folders).ok());
  EXPECT_EQ(absolute_globs({"*.restart", "out/*"}, folders)->size(), 2u);
}

}  // namespace
}  // namespace backstay::bin
