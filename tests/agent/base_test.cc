// What a version may need that has a base, in runs of one node and of several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/checkpoint/older.h"
#include "commit_coordinator_world.h"

namespace backstay::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr RunId run = 7;

class BaseTest : public ::testing::Test {
 protected:
  DecidingNode& node_of(std::uint32_t nodes) {
    node_.emplace(0, nodes, network_, system_clock());
    node_->state.run = run;
    return *node_;
  }
  // On the node's disk, whole, with a record that says what it may need.
  Parts written(VersionNumber version, std::vector<format::Need> needs) {
    StoredVersion stored = node_->stored(version, run);
    stored.level = Level::local;
    stored.record.needs = std::move(needs);
    node_->state.versions.found(stored, Where::disk);
    auto part = std::make_shared<format::Manifest>();
    part->version = version;
    part->run = run;
    return {part};
  }

  net::LoopbackNetwork network_{system_clock(), {}};
  std::optional<DecidingNode> node_;
};

// Another node's part may keep chunks that the base has of versions before it.
TEST_F(BaseTest, OnSeveralNodesItIsTheBaseAndWhatThatMayNeed) {
  const JobState& state = node_of(2).state;
  const auto base = written(9, {{7, run}, {8, run}});
  const auto needs = needs_on(state, base);
  ASSERT_TRUE(needs.ok());
  EXPECT_THAT(*needs,
              ElementsAre(format::Need{7, run}, format::Need{8, run}, format::Need{9, run}));
}

TEST_F(BaseTest, OnOneNodeTheManifestSaysIt) {
  const JobState& state = node_of(1).state;
  const auto needs = needs_on(state, written(9, {{8, run}}));
  ASSERT_TRUE(needs.ok());
  EXPECT_THAT(*needs, IsEmpty());
}

TEST_F(BaseTest, AChainThatARecordHasNoRoomForIsRefused) {
  const JobState& state = node_of(2).state;
  std::vector<format::Need> many;
  for (VersionNumber version = 1; version < format::needs_max; ++version) {
    many.push_back({version, run});
  }
  EXPECT_TRUE(needs_on(state, written(30, many)).ok());
  many.push_back({25, run});
  const auto refused = needs_on(state, written(31, many));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::again) << "the rank can save all of its object";
}

}  // namespace
}  // namespace backstay::agent::testing
