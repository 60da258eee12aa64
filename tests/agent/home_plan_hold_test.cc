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
