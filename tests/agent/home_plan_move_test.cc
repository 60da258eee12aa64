// Files that a program renames before they are at their paths (docs/protocol/home.md).
#include "home_plan_world.h"

namespace backstay::agent {
namespace {

TEST_F(HomePlanTest, ARenamedFileComesToItsNewPathOnly) {
  store(1, {{"/w/x.tmp", 10}});
  EXPECT_EQ(step(), "look at 1");
  EXPECT_TRUE(plan_.move(1, "/w/x.tmp", "/w/x", 30).ok());
  plan_.settle(1, "/w/x", now_);
  EXPECT_EQ(answers(), Answers{});
  EXPECT_EQ(run(), (Steps{"bring /w/x.tmp of 1 to /w/x", "mark 1"}));
  EXPECT_EQ(answers(), (Answers{{1, "ok"}}));
  EXPECT_EQ(home_, (std::map<std::string, VersionNumber>{{"/w/x", 1}}));
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{1});
}

TEST_F(HomePlanTest, AFileMayBeRenamedBeforeItsTableIsKnown) {
  store_[1].found.files = {{"/w/x.tmp", 10}};
  plan_.captured(1);
  EXPECT_TRUE(plan_.move(1, "/w/x.tmp", "/w/y.tmp", 20).ok());
  plan_.recorded(record_of(1), 0);
  EXPECT_TRUE(plan_.move(1, "/w/y.tmp", "/w/x", 30).ok()) << "once more";
  plan_.settle(1, "/w/x", now_);
  EXPECT_EQ(run(), (Steps{"look at 1", "bring /w/x.tmp of 1 to /w/x", "mark 1"}));
  EXPECT_EQ(answers(), (Answers{{1, "ok"}}));
}

// Copies of a version on other hosts have the former name.
TEST_F(HomePlanTest, AVersionIsRenamedUntilItsFilesAreAtHome) {
  store_[1].found.files = {{"/w/x.tmp", 10}, {"/w/y", 10}};
  plan_.captured(1);
  EXPECT_FALSE(plan_.is_renamed(1));
  EXPECT_TRUE(plan_.move(1, "/w/x.tmp", "/w/x", 30).ok());
  EXPECT_TRUE(plan_.is_renamed(1)) << "before its table is known";
  plan_.recorded(record_of(1), 0);
  EXPECT_EQ(step(), "look at 1");
  EXPECT_TRUE(plan_.is_renamed(1));
  EXPECT_FALSE(plan_.is_renamed(2));
  run();
  EXPECT_FALSE(plan_.is_renamed(1));
}

TEST_F(HomePlanTest, WhatIsNotKnownIsNotRenamedToWhereAnOlderOneIsOnItsWay) {
  store(1, {{"/w/x", 10}});
  EXPECT_EQ(step(), "look at 1");
  const HomeOrders orders = plan_.next(now_);
  ASSERT_EQ(orders.size(), 1U);
  store_[2].found.files = {{"/w/x.tmp", 20}};
  plan_.captured(2);
  EXPECT_EQ(plan_.move(2, "/w/x.tmp", "/w/x", 30).error().code(), Code::busy);
  EXPECT_TRUE(plan_.move(2, "/w/x.tmp", "/w/y", 30).ok());
  EXPECT_EQ(carry_out(std::get<BringFile>(orders.front())), "bring /w/x of 1");
}

TEST_F(HomePlanTest, WhatIsRenamedAgainAndAgainIsBroughtOnce) {
  for (VersionNumber version = 1; version <= 3; ++version) {
    store(version, {{"/w/x.tmp", 10 * version}});
    EXPECT_EQ(step(), "look at " + std::to_string(version));
    EXPECT_TRUE(plan_.move(version, "/w/x.tmp", "/w/x", 10 * version + 5).ok());
  }
  EXPECT_EQ(run(), (Steps{"bring /w/x.tmp of 3 to /w/x", "mark 1", "mark 2", "mark 3"}));
  answers();
  EXPECT_EQ(at_home_, (std::vector<VersionNumber>{1, 2, 3}));
}

TEST_F(HomePlanTest, ARenameComesAfterVersionsThatEndedBeforeIt) {
  captured_ns_ = {{1, 100}, {2, 200}};
  store(1, {{"/w/x.tmp", 90}});
  store(2, {{"/w/index", 190}});
  EXPECT_EQ(step(), "look at 1");
  EXPECT_EQ(step(), "look at 2");
  EXPECT_TRUE(plan_.move(1, "/w/x.tmp", "/w/x", 300).ok());
  EXPECT_EQ(step(), "bring /w/index of 2");
}

TEST_F(HomePlanTest, AMarkThatIsBeingWrittenDoesNotKnowWhatIsCalledBackMeanwhile) {
  store(1, {{"/w/x", 10}});
  store_[1].refused["/w/x"] = "the disk is full";
  EXPECT_EQ(step(), "look at 1");
  EXPECT_EQ(step(), "fail /w/x of 1");
  const HomeOrders marks = plan_.next(now_);
  ASSERT_TRUE(!marks.empty() && std::holds_alternative<MarkHome>(marks.front()));
  EXPECT_TRUE(plan_.move(1, "/w/x", "", 0).ok());
  plan_.on(HomeMarked{1, {}, {}}, now_);
  answers();
  EXPECT_TRUE(at_home_.empty()) << "the mark says that it waits";
  EXPECT_EQ(run(), Steps{"mark 1"});
  answers();
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{1});
}

TEST_F(HomePlanTest, WhatIsOnItsWayOrAtHomeIsNotRenamed) {
  store(1, {{"/w/x.tmp", 10}});
  EXPECT_EQ(plan_.move(2, "/w/x.tmp", "/w/x", 30).error().code(), Code::not_found);
  EXPECT_EQ(step(), "look at 1");
  EXPECT_EQ(plan_.move(1, "/w/other", "/w/x", 30).error().code(), Code::not_found);
  const HomeOrders orders = plan_.next(now_);
  ASSERT_EQ(orders.size(), 1U);
  EXPECT_EQ(plan_.move(1, "/w/x.tmp", "/w/x", 30).error().code(), Code::busy);
  EXPECT_EQ(carry_out(std::get<BringFile>(orders.front())), "bring /w/x.tmp of 1");
  EXPECT_EQ(plan_.move(1, "/w/x.tmp", "/w/x", 30).error().code(), Code::state);
  run();
  EXPECT_EQ(plan_.move(1, "/w/x.tmp", "/w/x", 30).error().code(), Code::state);
}

TEST_F(HomePlanTest, ARenamedFileThatFailsWaitsAndItsMarkNamesItAsItsTableDoes) {
  store(1, {{"/w/x.tmp", 10}});
  store_[1].refused["/w/x.tmp"] = "full";
  EXPECT_EQ(step(), "look at 1");
  EXPECT_TRUE(plan_.move(1, "/w/x.tmp", "/w/x", 30).ok());
  EXPECT_EQ(run(), (Steps{"fail /w/x.tmp of 1 to /w/x", "mark 1 not /w/x.tmp"}));
  answers();
  EXPECT_EQ(warnings_, Steps{"/w/x: full"});
  EXPECT_TRUE(plan_.move(1, "/w/x", "/w/y", 40).ok()) << "and is renamed while it waits";
  store_[1].refused.clear();
  EXPECT_EQ(run(), (Steps{"bring /w/x.tmp of 1 to /w/y", "mark 1"}));
}

TEST_F(HomePlanTest, AFileThatIsMovedNowhereIsNotBrought) {
  store(1, {{"/w/x.tmp", 10}});
  EXPECT_TRUE(plan_.move(1, "/w/x.tmp", "", 0).ok()) << "before its table is known";
  EXPECT_EQ(run(), (Steps{"look at 1", "mark 1"}));
  store(2, {{"/w/y.tmp", 20}});
  EXPECT_EQ(step(), "look at 2");
  EXPECT_TRUE(plan_.move(2, "/w/y.tmp", "", 0).ok());
  EXPECT_EQ(run(), Steps{"mark 2"});
  answers();
  EXPECT_EQ(at_home_, (std::vector<VersionNumber>{1, 2}));
  EXPECT_TRUE(home_.empty());
}

// Who captured it brings it itself.
TEST_F(HomePlanTest, AVersionThatCannotBeWrittenIsNoTroubleOnceItIsCalledBack) {
  plan_.captured(1);
  plan_.failed(1, Error(Code::no_space, "disk full"));
  plan_.settle(1, "", now_);
  EXPECT_EQ(answers(), (Answers{{1, "disk full"}}));
  EXPECT_EQ(plan_.move(1, "/w/x", "/w/y", 30).error().code(), Code::no_space);
  EXPECT_FALSE(plan_.is_called_back(1));
  EXPECT_TRUE(plan_.is_left(1));
  EXPECT_TRUE(plan_.move(1, "/w/x", "", 0).ok());
  EXPECT_TRUE(plan_.is_called_back(1));
  EXPECT_FALSE(plan_.is_left(1));
  plan_.settle(2, "", now_);
  EXPECT_EQ(answers(), (Answers{{2, "ok"}}));
  store_[1].found.files = {{"/w/x", 10}};
  plan_.recorded(record_of(1), 0);  // there is room by now
  EXPECT_FALSE(plan_.is_called_back(1));
  EXPECT_EQ(run(), (Steps{"look at 1", "mark 1"}));
  EXPECT_EQ(home_, (std::map<std::string, VersionNumber>{}));
}

TEST_F(HomePlanTest, WhoAsksForTheNameThatAFileHadIsToldOnceTheMarkIsWritten) {
  store_[1].found.files = {{"/w/x.tmp", 10}};
  plan_.captured(1);
  EXPECT_TRUE(plan_.move(1, "/w/x.tmp", "/w/x", 30).ok());
  EXPECT_TRUE(plan_.move(1, "/w/x", "", 0).ok());
  plan_.settle(1, "/w/x", now_);
  plan_.recorded(record_of(1), 0);
  store(2, {{"/w/x", 20}});
  EXPECT_EQ(step(), "look at 1");
  EXPECT_EQ(answers(), Answers{});
  EXPECT_EQ(run(), (Steps{"mark 1", "look at 2", "mark 2"})) << "it is older at its path";
  EXPECT_EQ(answers(), (Answers{{1, "ok"}}));
}

TEST_F(HomePlanTest, WhatAnAgentBeforeHasPutToItsPathIsNotBroughtAgain) {
  store(1, {{"/w/x", 10}});
  store(2, {{"/w/x.tmp", 20, 0, "/w/x", 30}, {"/w/y", 20}});
  store(3, {{"/w/z.tmp", 40, 0, "/w/z.tmp", 40}});
  plan_.settle(1, "/w/x", now_);
  EXPECT_EQ(step(), "look at 1");
  EXPECT_EQ(step(), "look at 2");
  EXPECT_EQ(plan_.move(2, "/w/x", "", 0).error().code(), Code::state);
  EXPECT_EQ(answers(), Answers{}) << "its mark is missing";
  EXPECT_EQ(run(), (Steps{"mark 1", "look at 3", "mark 3", "bring /w/y of 2", "mark 2"}));
  EXPECT_EQ(answers(), (Answers{{1, "ok"}}));
  EXPECT_EQ(at_home_, (std::vector<VersionNumber>{1, 3, 2}));
}

TEST_F(HomePlanTest, WhileAnOlderFileOfTheNewPathIsOnItsWayNothingIsRenamed) {
  store(1, {{"/w/x", 10}});
  store(2, {{"/w/x.tmp", 20}});
  EXPECT_EQ(step(), "look at 1");
  EXPECT_EQ(step(), "look at 2");
  const HomeOrders orders = plan_.next(now_);
  EXPECT_EQ(plan_.move(2, "/w/x.tmp", "/w/x", 30).error().code(), Code::busy);
  EXPECT_EQ(carry_out(std::get<BringFile>(orders.front())), "bring /w/x of 1");
  EXPECT_TRUE(plan_.move(2, "/w/x.tmp", "/w/x", 30).ok());
  EXPECT_EQ(run(), (Steps{"mark 1", "bring /w/x.tmp of 2 to /w/x", "mark 2"}));
}

TEST_F(HomePlanTest, AnOlderFileOfTheNewPathIsOvertaken) {
  store(1, {{"/w/x", 10}});
  store_[1].refused["/w/x"] = "full";
  run();
  store(2, {{"/w/x.tmp", 20}});
  EXPECT_EQ(step(), "look at 2");
  EXPECT_TRUE(plan_.move(2, "/w/x.tmp", "/w/x", 30).ok());
  EXPECT_EQ(run(), (Steps{"bring /w/x.tmp of 2 to /w/x", "mark 1", "mark 2"}));
  plan_.gone(2);
  plan_.gone(1);
  EXPECT_EQ(plan_.counts().versions, 0U);
}

}  // namespace
}  // namespace backstay::agent
