// Which paths a pattern takes in, and how paths become absolute.
#include "capture/files/pattern.h"

#include <gtest/gtest.h>

#include <string>

namespace backstay::files {
namespace {

struct Case {
  const char* pattern;
  const char* path;
  bool fits;
};

TEST(Pattern, TakesWholePaths) {
  const Case cases[] = {
      {"/w/out", "/w/out", true},
      {"/w/out", "/w/out2", false},
      {"/w/*.dat", "/w/a.dat", true},
      {"/w/*.dat", "/w/.dat", true},
      {"/w/*.dat", "/w/sub/a.dat", false},
      {"/w/**.dat", "/w/sub/a.dat", true},
      {"/w/**", "/w/a/b/c", true},
      {"/w/**", "/w", false},
      {"/w/**/x", "/w/a/b/x", true},
      {"/w/*/x", "/w/a/b/x", false},
      {"/w/?", "/w/a", true},
      {"/w/?", "/w/", false},
      {"/w?a", "/w/a", false},
      {"/w/[ab]1", "/w/b1", true},
      {"/w/[ab]1", "/w/c1", false},
      {"/w/[!ab]1", "/w/c1", true},
      {"/w/[0-9]", "/w/5", true},
      {"/w/[0-9]", "/w/x", false},
      {"/w[!a]b", "/w/b", false},
      {"/w/[]]", "/w/]", true},
      {"/w/[a", "/w/[a", true},
      {"/w/\\*", "/w/*", true},
      {"/w/\\*", "/w/a", false},
      {"", "/w", false},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(matches(one.pattern, one.path), one.fits) << one.pattern << " " << one.path;
  }
}

TEST(Pattern, OneALine) {
  EXPECT_TRUE(matches_any("/a/*\n/b/*", "/b/x"));
  EXPECT_TRUE(matches_any("\n\n/b/*\n", "/b/x"));
  EXPECT_FALSE(matches_any("/a/*\n/b/*", "/c/x"));
  EXPECT_FALSE(matches_any("", "/c/x"));
}

std::string absolute(const char* folder, const char* path) {
  PathText whole;
  return make_absolute(folder, path, whole) ? std::string(whole.view()) : "refused";
}

TEST(Absolute, WithoutDotsAndDoubleSlashes) {
  EXPECT_EQ(absolute("/w", "a"), "/w/a");
  EXPECT_EQ(absolute("/w", "/a//b/./c"), "/a/b/c");
  EXPECT_EQ(absolute("/w/x", "../a"), "/w/a");
  EXPECT_EQ(absolute("/w", "../../a"), "/a");
  EXPECT_EQ(absolute("/", "a"), "/a");
  EXPECT_EQ(absolute("/w", ".."), "/");
  EXPECT_EQ(absolute("/w", ""), "refused");
}

TEST(Absolute, RefusesWhatIsTooLong) {
  EXPECT_EQ(absolute("/w", std::string(path_max, 'a').c_str()), "refused");
  const std::string longest(path_max - 2, 'a');
  EXPECT_EQ(absolute("/", longest.c_str()), "/" + longest);
}

}  // namespace
}  // namespace backstay::files
