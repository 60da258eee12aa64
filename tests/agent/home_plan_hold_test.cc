// Files that a program has synced and not closed (docs/protocol/home.md, "Holds").
#include "home_plan_world.h"

namespace backstay::agent {
namespace {

TEST_F(HomePlanTest, WhatAProgramHasOpenIsLeftAlone) {
  held_ = {1};
  store(1, {{"/w/x", 10}});
  store(2, {{"/w/y", 20}});
  plan_.settle(1, "", now_);
  EXPECT_EQ(run(),
            (Steps{"look at 1", "look at 2", "hold /w/x of 1", "bring /w/y of 2", "mark 2"}));
  EXPECT_EQ(answers(), (Answers{{1, "ok"}})) << "nobody waits for it";
  EXPECT_EQ(warnings_, Steps{});
  EXPECT_EQ(plan_.counts().failed, 0u);
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{2}) << "it stays pinned";
  EXPECT_GT(plan_.wakes_at_ns(), now_);
}

TEST_F(HomePlanTest, WhatWasLetGoComesWhenSomebodyAsks) {
  held_ = {1};
  store(1, {{"/w/x", 10}});
  EXPECT_EQ(run(), (Steps{"look at 1", "hold /w/x of 1"}));
  held_.clear();
  EXPECT_EQ(run(), Steps{});
  plan_.settle(1, "/w/x", now_);
  EXPECT_EQ(run(), (Steps{"bring /w/x of 1", "mark 1"}));
  EXPECT_EQ(answers(), (Answers{{1, "ok"}}));
}

// The home thread has looked at the hold; then the program closes the file, and the collector asks.
TEST_F(HomePlanTest, WhatWasLetGoWhileItWasLookedAtIsLookedAtAgain) {
  store(1, {{"/w/x", 10}});
  EXPECT_EQ(step(), "look at 1");
  for (const char* asked : {"/w/x", "/w/", ""}) {
    const HomeOrders orders = plan_.next(now_);
    ASSERT_EQ(orders.size(), 1U) << asked;
    const auto& bring = std::get<BringFile>(orders.front());
    plan_.settle(1, asked, now_);
    plan_.settle(2, "/w/other", now_);
    plan_.on(FileBrought{bring.version, bring.to, Brought::held, "a program has it open"}, now_);
    EXPECT_EQ(answers(), (Answers{{2, "ok"}})) << "that look began before the question: " << asked;
    plan_.forget(1);
  }
  plan_.settle(1, "/w/x", now_);
  EXPECT_EQ(run(), (Steps{"bring /w/x of 1", "mark 1"}));
  EXPECT_EQ(answers(), (Answers{{1, "ok"}}));
}

TEST_F(HomePlanTest, ATryThatBeganBeforeTheQuestionDoesNotAnswerIt) {
  store(1, {{"/w/x", 10}});
  EXPECT_EQ(step(), "look at 1");
  const HomeOrders orders = plan_.next(now_);
  ASSERT_EQ(orders.size(), 1U);
  plan_.settle(1, "/w/x", now_);
  plan_.on(FileBrought{1, "/w/x", Brought::failed, "no space left", Code::no_space}, now_);
  EXPECT_EQ(answers(), Answers{});
  EXPECT_EQ(run(), (Steps{"mark 1 not /w/x", "bring /w/x of 1", "mark 1"})) << "at once";
  EXPECT_EQ(answers(), (Answers{{1, "ok"}}));
}

TEST_F(HomePlanTest, WhatWasLetGoComesByItselfToo) {
  held_ = {1};
  store(1, {{"/w/x", 10}});
  EXPECT_EQ(run(), (Steps{"look at 1", "hold /w/x of 1"}));
  held_.clear();
  now_ = plan_.wakes_at_ns();
  EXPECT_EQ(run(), (Steps{"bring /w/x of 1", "mark 1"}));
}

TEST_F(HomePlanTest, WhatIsSyncedAgainTakesThePlaceOfTheSyncBefore) {
  held_ = {1, 2};
  store(1, {{"/w/x", 10}});
  EXPECT_EQ(run(), (Steps{"look at 1", "hold /w/x of 1"}));
  store(2, {{"/w/x", 20}});
  EXPECT_EQ(run(), (Steps{"look at 2", "hold /w/x of 2"}));
  EXPECT_TRUE(plan_.move(1, "/w/x", "", 0).ok());
  EXPECT_EQ(run(), Steps{"mark 1"});
  answers();
  EXPECT_EQ(at_home_, std::vector<VersionNumber>{1});
  held_.clear();
  plan_.settle(1, "/w/x", now_);
  EXPECT_EQ(run(), (Steps{"bring /w/x of 2", "mark 2"}));
}

}  // namespace
}  // namespace backstay::agent
