#include "agent/version/blockers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tree/facts.h"

namespace backstay::agent {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

Blocker blocker(VersionNumber version, Level level, std::string why = "the disk is full") {
  return {version, level, Code::no_space, std::move(why)};
}

TEST(BlockersFact, ComesBackAsItWas) {
  const NodeBlockers all{
      "n\"1", {blocker(7, Level::local, "a \"b\" \\ \xc3\xa4"), blocker(6, Level::protected_)}};
  const auto back = decode_blockers(encode(all));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, all);
  const auto none = decode_blockers(encode({"n1", {}}));
  ASSERT_TRUE(none.ok());
  EXPECT_THAT(none->blockers, IsEmpty());
}

TEST(BlockersFact, FitsWhateverTheReasonsAre) {
  for (const char one : {'x', '"', '\\', '\n', '\xff', '\0'}) {
    NodeBlockers all{std::string(300, one), {}};
    for (VersionNumber version = 1; version < 20; ++version) {
      all.blockers.push_back(blocker(version, Level::local, std::string(5000, one)));
    }
    const std::string value = encode(all);
    EXPECT_LE(value.size(), tree::Facts::value_bytes_max);
    EXPECT_EQ(value.find('\0'), std::string::npos);
    const auto back = decode_blockers(value);
    ASSERT_TRUE(back.ok()) << value;
    ASSERT_GE(back->blockers.size(), 1u) << value;
    EXPECT_EQ(back->blockers[0].version, 19u) << "the newest is told";
  }
}

// What the operating system said comes last, after paths of any length.
TEST(BlockersFact, TheEndOfALongReasonIsTold) {
  const std::string path(300, 'p');
  const auto told = decode_blockers(
      encode({"n1", {blocker(3, Level::local, "write " + path + ": No space left")}}));
  ASSERT_TRUE(told.ok());
  EXPECT_THAT(told->blockers.at(0).why,
              AllOf(StartsWith("write ppp"), EndsWith("ppp: No space left")));
  const std::string line = line_of(told->blockers.at(0));
  EXPECT_THAT(line, AllOf(StartsWith("version 3 not local: write ppp"), HasSubstr("..."),
                          EndsWith("ppp: No space left")));
  EXPECT_LE(line.size(), 160u);
}

TEST(BlockersFact, NoCharacterIsDividedByShortening) {
  std::string why;
  for (int i = 0; i < 200; ++i) why += "\xc3\xa4";
  for (const std::string before : {"", "x"}) {
    const auto told = decode_blockers(encode({"n1", {blocker(3, Level::local, before + why)}}));
    ASSERT_TRUE(told.ok());
    EXPECT_THAT(told->blockers.at(0).why, Not(HasSubstr("\xef\xbf\xbd")));
  }
}

TEST(BlockersFact, OtherTextsAreRefused) {
  for (const char* text :
       {"", "[]", "{}", "{\"host\":1,\"lacks\":[]}", "{\"host\":\"n\"}",
        "{\"host\":\"n\",\"lacks\":{}}", "{\"host\":\"n\",\"lacks\":[1]}",
        R"({"host":"n","lacks":[{"version":0,"level":2,"code":31,"why":"x"}]})",
        R"({"host":"n","lacks":[{"version":-1,"level":2,"code":31,"why":"x"}]})",
        R"({"host":"n","lacks":[{"version":1,"level":5,"code":31,"why":"x"}]})",
        R"({"host":"n","lacks":[{"version":1,"level":2,"code":0,"why":"x"}]})",
        R"({"host":"n","lacks":[{"version":1,"level":2,"code":31}]})",
        R"({"host":"n","lacks":[{"version":1.5,"level":2,"code":31,"why":"x"}]})"}) {
    EXPECT_FALSE(decode_blockers(text).ok()) << text;
  }
}

}  // namespace
}  // namespace backstay::agent
