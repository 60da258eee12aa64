// Which version becomes durable next, where a version needs older ones.
#include "agent/drain/due_version.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "commit_coordinator_world.h"

namespace backstay::agent::testing {
namespace {

class DueVersionTest : public ::testing::Test {
 protected:
  static constexpr RunId run = 7;

  DueVersionTest() {
    node_.state.durable_settings = {.dir = "/shared", .every = 3};
    node_.state.run = run;
  }
  void find(VersionNumber version, std::vector<format::Need> needs = {}) {
    StoredVersion found = node_.stored(version, run);
    found.level = Level::local;
    found.record.needs = std::move(needs);
    node_.state.versions.found(found, Where::disk);
  }
  void copy(VersionNumber version) {
    StoredVersion copied = node_.stored(version, run);
    copied.level = Level::durable;
    node_.state.versions.found(copied, Where::shared);
  }
  // Of an agent that has just become the coordinator.
  VersionNumber next() {
    DueVersion due(node_.state, /*target=*/0);
    for (const auto& [number, row] : node_.state.versions.rows()) due.consider(number, false);
    return due.answer();
  }

  ManualClock clock_;
  net::LoopbackNetwork network_{clock_};
  DecidingNode node_{0, 2, network_, clock_};
};

TEST_F(DueVersionTest, IsEveryNth) {
  for (const VersionNumber version : {3, 4, 5}) find(version);
  copy(3);
  EXPECT_EQ(next(), 0u);
  find(6);
  EXPECT_EQ(next(), 6u);
  copy(4);  // a program waited for it
  EXPECT_EQ(next(), 0u) << "it counts from there";
}

// Each version of captured files holds other ones; whatever is durable, those that could be lost
// with the host go first.
TEST_F(DueVersionTest, FilesThatAreNotAtHomeGoFirstTheOldestBeforeTheOthers) {
  for (const VersionNumber version : {3, 4, 5, 6}) find(version);
  copy(5);
  VersionPin older(node_.state.versions, 3, PinReason::not_home);
  VersionPin newer(node_.state.versions, 4, PinReason::not_home);
  const VersionPin other(node_.state.versions, 6, PinReason::replicating);
  EXPECT_EQ(next(), 3u);
  copy(3);
  EXPECT_EQ(next(), 4u);
  newer.release();
  EXPECT_EQ(next(), 0u);
}

// The coordinator died after it had copied the first of them.
TEST_F(DueVersionTest, AVersionWhoseNeedsAreHalfCopiedIsStillDue) {
  for (const VersionNumber version : {3, 4}) find(version);
  find(5, {{4, run}});
  find(6, {{5, run}});
  copy(3);
  EXPECT_EQ(next(), 4u) << "what it needs comes first";
  copy(4);
  EXPECT_EQ(next(), 5u);
  copy(5);
  EXPECT_EQ(next(), 6u);
  copy(6);
  find(7);
  EXPECT_EQ(next(), 0u);
}

}  // namespace
}  // namespace backstay::agent::testing
