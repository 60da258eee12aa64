#include "agent/version/blockers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tree/facts.h"

namespace backstay::agent {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
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
  Blockers all;
  const auto told = decode_blockers(
      encode({"n1", {blocker(3, Level::local, "write " + path + ": No space left")}}));
  ASSERT_TRUE(told.ok());
  EXPECT_THAT(told->blockers.at(0).why,
              AllOf(StartsWith("write ppp"), EndsWith("ppp: No space left")));
  all.learn(1, *told);
  EXPECT_THAT(all.text(1), AllOf(StartsWith("version 3 not local: write ppp"), HasSubstr("..."),
                                 EndsWith("ppp: No space left")));
  EXPECT_LE(all.text(1).size(), 160u);
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

TEST(Blockers, TellWhatKeepsAVersionFromALevel) {
  Blockers all;
  EXPECT_FALSE(all.of(3, Level::captured, Level::durable));
  EXPECT_THAT(all.learn(1, {"n1", {blocker(3, Level::protected_)}}), ElementsAre(3));
  EXPECT_THAT(all.learn(2, {"n2", {blocker(3, Level::local, "broken")}}), ElementsAre(3));
  EXPECT_FALSE(all.of(4, Level::captured, Level::durable));
  const auto local = all.of(3, Level::captured, Level::durable);
  ASSERT_TRUE(local);
  EXPECT_EQ(local->code(), Code::no_space);
  EXPECT_EQ(local->message(), "node 2 (n2) keeps version 3 from level local: broken");
  EXPECT_TRUE(all.of(3, Level::captured, Level::local));
  EXPECT_FALSE(all.of(3, Level::local, Level::local)) << "it is there all the same";
  const auto copies = all.of(3, Level::local, Level::protected_);
  ASSERT_TRUE(copies);
  EXPECT_EQ(copies->message(),
            "node 1 (n1) keeps version 3 from level protected: the disk is full");
}

TEST(Blockers, AMemberThatIsLostOrCutOffKeepsAllVersions) {
  Blockers all;
  EXPECT_FALSE(all.of(3, Level::captured, Level::local));
  const tree::NodeSet lost = tree::NodeSet::of({{2, 1}, {5, 1}});
  EXPECT_TRUE(all.lost(lost, 1));
  EXPECT_FALSE(all.lost(lost, 1)) << "it is known";
  const auto gone = all.of(3, Level::captured, Level::local);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->code(), Code::agent_lost);
  EXPECT_EQ(gone->message(), "version 3 stays captured: node 2 and 1 more are lost");
  const Error why(Code::protocol, "it speaks version 2");
  EXPECT_TRUE(all.cut_off(1, why));
  EXPECT_FALSE(all.cut_off(1, why));
  const auto other = all.of(3, Level::captured, Level::local);
  ASSERT_TRUE(other);
  EXPECT_EQ(other->code(), Code::protocol);
  EXPECT_EQ(other->message(),
            "version 3 stays captured: no connection with node 1: it speaks version 2");
  all.learn(0, {"n0", {blocker(3, Level::local)}});
  EXPECT_EQ(all.of(3, Level::captured, Level::local)->code(), Code::no_space) << "what is nearer";
  EXPECT_TRUE(all.cut_off(1, std::nullopt));
  EXPECT_FALSE(all.cut_off(1, std::nullopt));
  EXPECT_TRUE(all.lost({}, 2));
  EXPECT_FALSE(all.of(4, Level::captured, Level::local));
}

TEST(Blockers, ANewWordOfANodeTakesTheOldOneBack) {
  Blockers all;
  all.learn(1, {"n1", {blocker(3, Level::local), blocker(2, Level::local)}});
  EXPECT_THAT(all.learn(1, {"n1", {blocker(4, Level::local), blocker(2, Level::local)}}),
              ElementsAre(3, 4));
  EXPECT_FALSE(all.of(3, Level::captured, Level::local));
  EXPECT_THAT(all.learn(1, {"n1", {}}), ElementsAre(2, 4));
  EXPECT_FALSE(all.of(4, Level::captured, Level::local));
  all.learn(1, {"n1", {blocker(4, Level::local)}});
  all.clear();
  EXPECT_FALSE(all.of(4, Level::captured, Level::local));
}

}  // namespace
}  // namespace backstay::agent
