// The plan by which captured files come home (docs/protocol/home.md), with a home thread that the
// test plays.
#include <gtest/gtest.h>

#include <algorithm>

#include "home_plan_world.h"

namespace backstay::agent {
namespace {

TEST_F(HomePlanTest, AVersionsFilesComeInTheirOrderThenTheMark) {
  store(1, {{"/w/b", 10}, {"/w/a", 20}});
  EXPECT_EQ(run(), (Steps{"look at 1", "bring /w/b of 1", "bring /w/a of 1", "mark 1"}));
  answers();
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{1});
  EXPECT_EQ(plan_.counts().versions, 0U);
  EXPECT_EQ(plan_.wakes_at_ns(), no_deadline);
}

TEST_F(HomePlanTest, AVersionWithoutCapturedFilesGetsNoMark) {
  store(1, {});
  EXPECT_EQ(run(), Steps{"look at 1"});
  answers();
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{1});
}

TEST_F(HomePlanTest, VersionsComeInTheirOrder) {
  store(1, {{"/w/a", 10}});
  store(2, {{"/w/b", 20}});
  EXPECT_EQ(run(), (Steps{"look at 1", "look at 2", "bring /w/a of 1", "mark 1", "bring /w/b of 2",
                          "mark 2"}));
}

TEST_F(HomePlanTest, VersionsComeInTheOrderInWhichTheyEnded) {
  captured_ns_ = {{1, 50}, {2, 40}};  // of two writers: the one that began first ended last
  store(1, {{"/w/a", 10}});
  store(2, {{"/w/b", 20}});
  EXPECT_EQ(run(), (Steps{"look at 1", "look at 2", "bring /w/b of 2", "mark 2", "bring /w/a of 1",
                          "mark 1"}));
}

TEST_F(HomePlanTest, OnlyTheNewestOfAPathIsBrought) {
  store(1, {{"/w/a", 10}, {"/w/b", 11}});
  store(2, {{"/w/a", 10}});  // the same file, longer by now
  store(3, {{"/w/b", 9}});   // came to the path before that of version 1
  EXPECT_EQ(run(), (Steps{"look at 1", "look at 2", "look at 3", "bring /w/b of 1", "mark 3",
                          "bring /w/a of 2", "mark 1", "mark 2"}));
  EXPECT_EQ(home_, (std::map<std::string, VersionNumber>{{"/w/a", 2}, {"/w/b", 1}}));
}

TEST_F(HomePlanTest, AnOlderVersionThatIsReadLaterReplacesNothing) {
  unreadable_.emplace(1, Error(Code::io, "EIO"));
  store(1, {{"/w/a", 10}});
  store(2, {{"/w/a", 20}});
  EXPECT_EQ(step(), "cannot look at 1");
  EXPECT_EQ(step(), "look at 2");
  EXPECT_EQ(step(), "bring /w/a of 2");
  unreadable_.clear();
  now_ += second;
  EXPECT_EQ(run(), (Steps{"mark 2", "look at 1", "mark 1"}));
}

TEST_F(HomePlanTest, AFileThatFailsWaitsAndOthersGoOn) {
  store(1, {{"/gone/a", 10}, {"/w/b", 20}});
  store_[1].refused["/gone/a"] = "no such folder";
  EXPECT_EQ(run(),
            (Steps{"look at 1", "fail /gone/a of 1", "bring /w/b of 1", "mark 1 not /gone/a"}));
  answers();
  EXPECT_EQ(warnings_, Steps{"/gone/a: no such folder"});
  EXPECT_TRUE(at_home_.empty());
  for (const std::uint64_t pause : {1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}) {
    EXPECT_EQ(plan_.wakes_at_ns(), now_ + pause * second);
    now_ += pause * second - 1;
    EXPECT_EQ(step(), "");
    now_ += 1;
    EXPECT_EQ(run(), Steps{"fail /gone/a of 1"}) << "and no mark, as nothing has changed";
  }
  store_[1].refused["/gone/a"] = "read-only";
  now_ += 300 * second;
  EXPECT_EQ(run(), (Steps{"fail /gone/a of 1", "mark 1 not /gone/a"}));
  store_[1].refused.clear();
  now_ += 300 * second;
  EXPECT_EQ(run(), (Steps{"bring /gone/a of 1", "mark 1"}));
  answers();
  EXPECT_EQ(warnings_, (Steps{"/gone/a: no such folder", "/gone/a: read-only"}));
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{1});
}

TEST_F(HomePlanTest, AFileThatFailedIsOvertakenByANewerOne) {
  store(1, {{"/w/a", 10}});
  store_[1].refused["/w/a"] = "full";
  run();
  store(2, {{"/w/a", 20}});
  EXPECT_EQ(run(), (Steps{"look at 2", "bring /w/a of 2", "mark 1", "mark 2"}));
  now_ += 1000 * second;
  EXPECT_EQ(run(), Steps{});
  answers();
  EXPECT_EQ(at_home_, (std::vector<VersionNumber>{1, 2}));
}

TEST_F(HomePlanTest, WithoutTheNewerVersionTheOlderOneCounts) {
  store(1, {{"/w/a", 10}});
  store(2, {{"/w/a", 20}});
  EXPECT_EQ(step(), "look at 1");
  EXPECT_EQ(step(), "look at 2");
  plan_.gone(2);
  EXPECT_EQ(run(), (Steps{"bring /w/a of 1", "mark 1"}));
}

TEST_F(HomePlanTest, AVersionThatGoesWhileItsFileIsOnItsWayStillOvertakes) {
  store(1, {{"/w/a", 10}});
  store(2, {{"/w/a", 20}});
  step();
  step();
  const HomeOrders orders = plan_.next(now_);
  ASSERT_TRUE(!orders.empty() && std::holds_alternative<BringFile>(orders.front()));
  EXPECT_EQ(plan_.on_its_way(), "/w/a");
  plan_.gone(2);
  EXPECT_TRUE(plan_.next(now_).empty()) << "the thread has its orders";
  plan_.on(FileBrought{2, "/w/a"}, now_);
  EXPECT_EQ(run(), Steps{"mark 1"});
}

TEST_F(HomePlanTest, ItCountsTheBytesThatWait) {
  store(1, {{"/w/a", 10, 100}, {"/w/b", 20, 30}, {"/w/c", 30, 7}});
  kept_.insert("/w/a");
  store_[1].refused["/w/b"] = "the disk is full";
  EXPECT_EQ(step(), "look at 1");
  EXPECT_EQ(plan_.counts().waiting, 3U);
  EXPECT_EQ(plan_.counts().waiting_bytes, 137U);
  run();
  EXPECT_EQ(plan_.counts().waiting, 1U) << "one is at home, one is kept";
  EXPECT_EQ(plan_.counts().waiting_bytes, 30U);
}

TEST_F(HomePlanTest, AKeptFileIsNotTriedAgainAndKeepsItsVersion) {
  store(1, {{"/w/a", 10}});
  store(2, {{"/w/a", 20}, {"/w/b", 21}});
  kept_.insert("/w/a");
  EXPECT_EQ(run(), (Steps{"look at 1", "look at 2", "keep /w/a of 2", "mark 1", "bring /w/b of 2",
                          "mark 2 not /w/a"}));
  now_ += 1000 * second;
  EXPECT_EQ(run(), Steps{});
  answers();
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{1});
  EXPECT_EQ(warnings_, Steps{"/w/a: newer"});
  EXPECT_EQ(plan_.counts().kept, 1U);
  kept_.clear();
  store(3, {{"/w/a", 30}});
  EXPECT_EQ(run(), (Steps{"look at 3", "bring /w/a of 3", "mark 2", "mark 3"}));
  EXPECT_EQ(plan_.counts().versions, 0U);
}

TEST_F(HomePlanTest, AKeptFileThatIsCalledBackIsNotKept) {
  store(1, {{"/w/a", 10}});
  kept_.insert("/w/a");
  run();
  EXPECT_EQ(plan_.counts().kept, 1U);
  EXPECT_EQ(plan_.move(1, "/w/a", "/w/b", 20).error().code(), Code::state);
  EXPECT_TRUE(plan_.move(1, "/w/a", "", 0).ok());
  EXPECT_EQ(run(), Steps{"mark 1"});
  answers();
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{1});
  EXPECT_EQ(plan_.counts().kept, 0U);
}

// The collector has changed what stands there itself, and knows that nobody else has.
TEST_F(HomePlanTest, AKeptFileThatIsMovedToItsOwnPathComes) {
  store(1, {{"/w/a", 10}});
  kept_.insert("/w/a");
  run();
  kept_.clear();
  EXPECT_TRUE(plan_.move(1, "/w/a", "/w/a", 20).ok());
  EXPECT_FALSE(plan_.is_renamed(1));
  plan_.settle(1, "/w/a", now_);
  EXPECT_EQ(run(), (Steps{"bring /w/a of 1", "mark 1"}));
  EXPECT_EQ(answers(), (Answers{{1, "ok"}}));
  EXPECT_EQ(plan_.counts().kept, 0U);
}

TEST_F(HomePlanTest, AFolderThatCannotBeSyncedHasItsFilesBroughtAgain) {
  store(1, {{"/bad/a", 10}, {"/w/b", 20}});
  unsynced_ = {"/bad"};
  EXPECT_EQ(run(), (Steps{"look at 1", "bring /bad/a of 1", "bring /w/b of 1", "mark 1",
                          "mark 1 not /bad/a"}));
  now_ += second;
  EXPECT_EQ(run(), (Steps{"bring /bad/a of 1", "mark 1"}));
}

TEST_F(HomePlanTest, AMarkThatCannotBeWrittenIsTriedAgain) {
  store(1, {{"/w/a", 10}});
  plan_.settle(7, "/w/a", now_);
  mark_errors_[1] = "disk full";
  EXPECT_EQ(run(), (Steps{"look at 1", "bring /w/a of 1", "cannot mark 1"}));
  EXPECT_EQ(answers(), (Answers{{7, "disk full"}}));
  mark_errors_.clear();
  now_ = plan_.wakes_at_ns();
  EXPECT_EQ(run(), Steps{"mark 1"});
  answers();
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{1});
  EXPECT_EQ(warnings_, Steps{": disk full"});
}

// Versions of several writers end in any order.
TEST_F(HomePlanTest, AnOlderRecordThatTurnsUpLaterReplacesNothing) {
  store(2, {{"/w/a", 20}});
  run();
  answers();
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{2});
  store(1, {{"/w/a", 10}, {"/w/b", 11}});
  EXPECT_EQ(run(), (Steps{"look at 1", "bring /w/b of 1", "mark 1"}));
  plan_ = {};
  store_[1].found.marked = false;  // it is killed before
  for (const VersionNumber version : {1, 2}) plan_.recorded(record_of(version), 0);
  EXPECT_EQ(run(), (Steps{"look at 1", "look at 2", "bring /w/b of 1", "mark 1"}));
}

TEST_F(HomePlanTest, AVersionStaysUntilNoOlderMarkNamesItsPaths) {
  store(1, {{"/w/a", 10}});
  store_[1].refused["/w/a"] = "full";
  run();
  store(2, {{"/w/a", 20}});
  EXPECT_EQ(step(), "look at 2");
  EXPECT_EQ(step(), "bring /w/a of 2");
  mark_errors_[1] = "full";
  EXPECT_EQ(step(), "cannot mark 1");
  EXPECT_EQ(step(), "mark 2");
  answers();
  EXPECT_TRUE(at_home_.empty());
  mark_errors_.clear();
  now_ += second;
  EXPECT_EQ(run(), Steps{"mark 1"});
  answers();
  EXPECT_EQ(at_home_, (std::vector<VersionNumber>{1, 2}));
}

// What the next agent finds.
TEST_F(HomePlanTest, AMarkSaysWhereTheNextAgentGoesOn) {
  store(1, {{"/w/a", 10}, {"/w/b", 11}, {"/w/c", 12}});
  store_[1].refused["/w/b"] = "full";
  kept_.insert("/w/c");
  run();
  store(2, {{"/w/d", 20}});
  run();
  plan_ = {};
  answers();
  store_[1].refused.clear();
  for (const VersionNumber version : {1, 2}) plan_.recorded(record_of(version), 0);
  EXPECT_EQ(run(), (Steps{"look at 1", "look at 2", "bring /w/b of 1", "mark 1 not /w/c"}));
  EXPECT_EQ(plan_.counts().kept, 1U);
}

// --- settle --------------------------------------------------------------------------------------

TEST_F(HomePlanTest, SettleIsAnsweredAtOnceWhereNothingIsToBeDone) {
  plan_.settle(1, "", now_);
  plan_.settle(2, "/w/a", now_);
  EXPECT_EQ(answers(), (Answers{{1, "ok"}, {2, "ok"}}));
}

TEST_F(HomePlanTest, SettleWaitsForTheMark) {
  plan_.captured(1);
  plan_.settle(1, "/w/a", now_);
  EXPECT_TRUE(answers().empty()) << "what is captured may be that file";
  store(1, {{"/w/a", 10}});
  step();
  EXPECT_EQ(step(), "bring /w/a of 1");
  EXPECT_TRUE(answers().empty()) << "a later agent would make it again";
  EXPECT_EQ(step(), "mark 1");
  EXPECT_EQ(answers(), (Answers{{1, "ok"}}));
}

TEST_F(HomePlanTest, SettleWaitsForOlderMarksToo) {
  store(1, {{"/w/a", 10}});
  store_[1].refused["/w/a"] = "full";
  run();
  store(2, {{"/w/a", 20}});
  plan_.settle(1, "/w/a", now_);
  EXPECT_EQ(step(), "look at 2");
  EXPECT_EQ(step(), "bring /w/a of 2");
  EXPECT_EQ(step(), "mark 1");
  EXPECT_TRUE(answers().empty());
  EXPECT_EQ(step(), "mark 2");
  EXPECT_EQ(answers(), (Answers{{1, "ok"}}));
}

TEST_F(HomePlanTest, SettleTriesAtOnceAndTellsTheError) {
  store(1, {{"/gone/a", 10}, {"/w/b", 20}});
  store_[1].refused["/gone/a"] = "no such folder";
  run();
  answers();
  plan_.settle(1, "/gone/a", now_);
  plan_.settle(2, "/w/b", now_);
  plan_.settle(3, "/gone/", now_);
  plan_.settle(4, "/gone", now_);
  plan_.settle(5, "", now_);
  EXPECT_EQ(answers(), (Answers{{2, "ok"}, {4, "ok"}})) << "that error is of before the question";
  EXPECT_EQ(run(), Steps{"fail /gone/a of 1"}) << "without the pause";
  const std::string why = "no such folder";
  EXPECT_EQ(answers(), (Answers{{1, why}, {3, why}, {5, why}}));
}

TEST_F(HomePlanTest, SettleOfAllEndsOnceAllOthersAreAtHome) {
  store(1, {{"/gone/a", 10}, {"/w/b", 20}});
  store_[1].refused["/gone/a"] = "no such folder";
  plan_.settle(1, "", now_);
  for (const char* what : {"look at 1", "fail /gone/a of 1", "bring /w/b of 1"}) {
    EXPECT_EQ(step(), what);
    EXPECT_TRUE(answers().empty()) << what;
  }
  EXPECT_EQ(step(), "mark 1 not /gone/a");
  EXPECT_EQ(answers(), (Answers{{1, "no such folder"}}));
}

TEST_F(HomePlanTest, SettleOfAKeptFileIsOver) {
  store(1, {{"/w/a", 10}});
  kept_.insert("/w/a");
  plan_.settle(1, "/w/a", now_);
  run();
  EXPECT_EQ(answers(), (Answers{{1, "ok"}})) << "nothing newer is in the store";
}

TEST_F(HomePlanTest, SettleTellsThatAVersionWasNotWritten) {
  plan_.captured(1);
  plan_.settle(1, "/w/a", now_);
  plan_.failed(1, Error(Code::no_space, "disk full"));
  EXPECT_EQ(answers(), (Answers{{1, "disk full"}}));
  now_ += second;
  plan_.settle(2, "/w/a", now_);
  EXPECT_EQ(answers(), (Answers{{2, "disk full"}}));
  store(1, {{"/w/a", 10}});  // tried again, and written
  plan_.settle(3, "/w/a", now_);
  run();
  EXPECT_EQ(answers(), (Answers{{3, "ok"}}));
}

// --- several at a time ---------------------------------------------------------------------------

TEST_F(HomePlanTest, SeveralFilesComeAtATimeAndThenTheirMarks) {
  for (VersionNumber version = 1; version <= 3; ++version) {
    store(version, {{"/w/" + std::to_string(version), 10 * version}});
  }
  EXPECT_EQ(run_at_once(2),
            (Steps{"look at 1", "look at 2", "look at 3", "bring /w/1 of 1; bring /w/2 of 2",
                   "mark 1; mark 2", "bring /w/3 of 3", "mark 3"}));
  answers();
  EXPECT_EQ(at_home_, (std::vector<VersionNumber>{1, 2, 3}));
}

TEST_F(HomePlanTest, OfThoseThatComeTogetherEachMayFail) {
  store(1, {{"/gone/a", 10}, {"/w/b", 11}});
  store(2, {{"/w/c", 20}});
  store_[1].refused["/gone/a"] = "no such folder";
  plan_.settle(1, "", now_);
  EXPECT_EQ(run_at_once(8),
            (Steps{"look at 1", "look at 2", "fail /gone/a of 1; bring /w/b of 1; bring /w/c of 2",
                   "mark 1 not /gone/a; mark 2"}));
  EXPECT_EQ(answers(), (Answers{{1, "no such folder"}}));
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{2});
}

TEST_F(HomePlanTest, LargeFilesComeOneByOne) {
  constexpr std::uint64_t large = 40 << 20;
  store(1, {{"/w/a", 10, large}, {"/w/b", 11, large}, {"/w/c", 12, 1}});
  EXPECT_EQ(run_at_once(8),
            (Steps{"look at 1", "bring /w/a of 1", "bring /w/b of 1; bring /w/c of 1", "mark 1"}));
}

TEST_F(HomePlanTest, AQuestionForAnyOfThoseOnTheirWayIsAnsweredByALaterTry) {
  store(1, {{"/w/a", 10}, {"/w/b", 11}});
  EXPECT_EQ(step(), "look at 1");
  const HomeOrders orders = plan_.next(now_, 8);
  ASSERT_EQ(orders.size(), 2U);
  plan_.settle(1, "/w/b", now_);
  EXPECT_EQ(plan_.move(1, "/w/a", "/w/c", 30).error().code(), Code::busy);
  EXPECT_EQ(plan_.move(1, "/w/b", "/w/c", 30).error().code(), Code::busy);
  EXPECT_TRUE(plan_.next(now_, 8).empty());
  plan_.on(FileBrought{1, "/w/b", Brought::failed, "no space left", Code::no_space}, now_);
  EXPECT_TRUE(plan_.next(now_, 8).empty()) << "the other one is not answered";
  plan_.on(FileBrought{1, "/w/a"}, now_);
  EXPECT_EQ(answers(), Answers{});
  EXPECT_EQ(run_at_once(8), (Steps{"mark 1 not /w/b", "bring /w/b of 1", "mark 1"}));
  EXPECT_EQ(answers(), (Answers{{1, "ok"}}));
}

TEST_F(HomePlanTest, WhoIsGoneGetsNoAnswer) {
  plan_.captured(1);
  plan_.settle(1, "", now_);
  plan_.forget(1);
  plan_.gone(1);
  EXPECT_TRUE(answers().empty());
}

}  // namespace
}  // namespace backstay::agent
