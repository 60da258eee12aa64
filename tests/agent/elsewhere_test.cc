// The level of a version of which this node has nothing.
#include <gtest/gtest.h>

#include <string>

#include "agent/version/levels.h"
#include "commit_coordinator_world.h"

namespace backstay::agent::testing {
namespace {

// Another node's part may be in its pool alone, as its disk was full: only a record proves the
// level.
TEST_F(CommitCoordinatorTest, WhatARestartReadFromOthersIsLocalOnceItsRecordIsKnown) {
  find_recorded(a_, 3, 6, Level::local);
  begin_run(7);
  b_.state.keep = 2;
  b_.state.elsewhere = {{3, 6}, {}};
  b_.state.went_on_from = VersionPin(b_.state.versions, 3, PinReason::went_on_from);
  Levels levels(b_.state);
  EXPECT_EQ(levels.level_of(3).level, Level::captured);
  begin_run(8);
  ASSERT_TRUE(until([&] { return levels.level_of(3).level == Level::local; }));
  b_.state.went_on_from.release();
  EXPECT_EQ(levels.level_of(3).level, Level::none) << "the others may have removed it";
  b_.state.went_on_from = VersionPin(b_.state.versions, 3, PinReason::went_on_from);
  b_.state.elsewhere.restarted_from = {3, 5};
  EXPECT_EQ(levels.level_of(3).level, Level::captured) << "the record is of another run";
}

}  // namespace
}  // namespace backstay::agent::testing
