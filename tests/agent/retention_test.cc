// Which versions retention removes: pure, of what the catalog says.
#include "agent/version/retention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "base/random.h"
#include "store/catalog.h"

namespace backstay::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

StoredVersion stored(VersionNumber number, Level level) {
  StoredVersion one;
  one.version = number;
  one.level = level;
  return one;
}

StoredVersion in_doubt(VersionNumber number) {
  StoredVersion one = stored(number, Level::none);
  one.in_doubt = true;
  return one;
}

TEST(Retention, KeepsTheNewest) {
  const std::vector<StoredVersion> all = {stored(1, Level::local), stored(2, Level::local),
                                          stored(3, Level::local)};
  EXPECT_THAT(expired(all, 2, 0), ElementsAre(1));
  EXPECT_THAT(expired(all, 1, 0), ElementsAre(2, 1));
  EXPECT_THAT(expired(all, 0, 0), ElementsAre(2, 1));
}

// Until a newer one is protected, the loss of a node would leave nothing.
TEST(Retention, KeepsTheNewestProtectedOneBehindThoseThatAreOnlyLocal) {
  std::vector<StoredVersion> all = {stored(1, Level::protected_), stored(2, Level::protected_),
                                    stored(3, Level::local), stored(4, Level::local)};
  EXPECT_THAT(expired(all, 1, 2), ElementsAre(3, 1));
  EXPECT_THAT(expired(all, 2, 2), ElementsAre(1));
  all.back().level = Level::protected_;
  EXPECT_THAT(expired(all, 1, 4), ElementsAre(3, 2, 1));
}

TEST(Retention, WhatIsOnlyRecordedAsProtectedTakesNoPlace) {
  const std::vector<StoredVersion> all = {
      stored(1, Level::protected_), stored(2, Level::protected_), stored(3, Level::protected_),
      stored(4, Level::local),      stored(5, Level::protected_), stored(6, Level::local)};
  EXPECT_THAT(expired(all, 1, 2), ElementsAre(4, 1)) << "2 is announced, others may lack 3 or 5";
  EXPECT_THAT(expired(all, 1, 4), ElementsAre(4, 2, 1)) << "4 is not recorded here yet";
  EXPECT_THAT(expired(all, 1, 0), ElementsAre(4)) << "an agent that has just begun knows of none";
  std::vector<StoredVersion> doubtful = all;
  doubtful[1].doubtful = true;
  EXPECT_THAT(expired(doubtful, 1, 2), ElementsAre(4, 2))
      << "1 is the newest announced that is good";
}

TEST(Retention, ADamagedOrDoubtfulOneIsNotTheSafest) {
  std::vector<StoredVersion> all = {stored(1, Level::protected_), stored(2, Level::protected_),
                                    stored(3, Level::local)};
  all[1].damage = "wrong";
  EXPECT_THAT(expired(all, 1, 0), ElementsAre(2));
  all[1].damage.clear();
  all[1].doubtful = true;
  EXPECT_THAT(expired(all, 1, 0), ElementsAre(2));
}

TEST(Retention, UndecidedOnesGoWithThoseThatAreTooOld) {
  const std::vector<StoredVersion> all = {in_doubt(1), stored(2, Level::local), in_doubt(3),
                                          stored(4, Level::local), in_doubt(5)};
  EXPECT_THAT(expired(all, 2, 0), ElementsAre(1));
  EXPECT_THAT(expired(all, 3, 0), IsEmpty());
  EXPECT_THAT(store::expired({in_doubt(1), in_doubt(2)}, 1, 0), IsEmpty());
}

// Nodes of a run, each of which learns what the others have said sooner or later, and removes what
// it need not keep.
class PlayedRun {
 public:
  explicit PlayedRun(std::uint64_t seed) : random_(seed) {}

  void step() {
    PlayedNode& node = nodes_[random_.below(nodes_.size())];
    switch (random_.below(5)) {
      case 0:
        ++node.newest;
        node.disk[node.newest] = stored(node.newest, Level::local);
        break;
      case 1: say(node); break;
      case 2: record(node); break;
      case 3: learn(node); break;
      default: retain(node);
    }
  }

  // The newest that anybody was told is protected; 0: none.
  VersionNumber announced() const {
    const auto newest = std::ranges::max_element(nodes_, {}, &PlayedNode::announced);
    return newest->announced;
  }
  bool is_everywhere(VersionNumber version) const {
    return std::ranges::all_of(
        nodes_, [version](const PlayedNode& node) { return node.disk.contains(version); });
  }

 private:
  struct PlayedNode {
    VersionNumber newest = 0;
    VersionNumber announced = 0;
    std::map<VersionNumber, StoredVersion> disk;
    std::set<VersionNumber> held, recorded;  // said once, true for ever as far as others know
  };

  bool all(std::set<VersionNumber> PlayedNode::*said, VersionNumber version) const {
    return std::ranges::all_of(
        nodes_, [&](const PlayedNode& node) { return (node.*said).contains(version); });
  }
  void say(PlayedNode& node) {
    if (node.disk.empty()) return;
    node.held.insert(
        std::next(node.disk.begin(), static_cast<std::ptrdiff_t>(random_.below(node.disk.size())))
            ->first);
  }
  void record(PlayedNode& node) {
    for (auto& [number, stored] : node.disk) {
      if (!all(&PlayedNode::held, number)) continue;
      stored.level = Level::protected_;
      node.recorded.insert(number);
    }
  }
  void learn(PlayedNode& node) {
    for (const VersionNumber number : node.recorded) {
      if (all(&PlayedNode::recorded, number)) node.announced = std::max(node.announced, number);
    }
  }
  void retain(PlayedNode& node) {
    std::vector<StoredVersion> versions;
    for (const auto& [number, stored] : node.disk) versions.push_back(stored);
    for (const VersionNumber number : expired(versions, 2, node.announced)) node.disk.erase(number);
  }

  SplitMix64 random_;
  std::vector<PlayedNode> nodes_ = std::vector<PlayedNode>(3);
};

TEST(Retention, WhatWasAnnouncedStaysOnAllNodesUntilANewerOneIs) {
  VersionNumber announced = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    PlayedRun run(seed);
    for (unsigned step = 0; step < 2000; ++step) {
      run.step();
      const VersionNumber version = run.announced();
      ASSERT_TRUE(version == 0 || run.is_everywhere(version))
          << "version " << version << " seed " << seed << " step " << step;
    }
    announced += run.announced();
  }
  EXPECT_GT(announced, 50u) << "or nothing was tried";
}

}  // namespace
}  // namespace backstay::agent::testing
