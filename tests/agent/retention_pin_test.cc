// Retention and protection when versions come faster than copies of them can be made.
#include "agent/redundancy/retention_pin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "agent/version/retention.h"
#include "base/random.h"

namespace backstay::agent {
namespace {

constexpr RunId run = 7;
using Disk = VersionTable::Rows;

VersionRow row_of(const StoredVersion& stored) {
  VersionRow row;
  row.disk = stored;
  row.announced = stored.level;
  return row;
}

StoredVersion stored(VersionNumber number, Level level, RunId of = run) {
  StoredVersion one;
  one.version = number;
  one.level = level;
  one.record.run = of;
  return one;
}

Disk disk_of(std::initializer_list<StoredVersion> versions) {
  Disk disk;
  for (const StoredVersion& one : versions) disk[one.version] = row_of(one);
  return disk;
}

TEST(RetentionPin, IsOneThatIsNotProtectedYet) {
  EXPECT_EQ(retention_pin({}, run), 0u);
  EXPECT_EQ(retention_pin(disk_of({stored(1, Level::protected_)}), run), 0u);
  EXPECT_EQ(retention_pin(disk_of({stored(1, Level::protected_), stored(2, Level::local)}), run),
            2u);
  EXPECT_EQ(retention_pin(disk_of({stored(1, Level::local), stored(2, Level::durable)}), run), 0u)
      << "nobody needs copies of what is older than a protected one";
}

TEST(RetentionPin, IsWholeAndOfTheRun) {
  EXPECT_EQ(
      retention_pin(disk_of({stored(1, Level::local), stored(2, Level::local, run + 1)}), run), 1u);
  StoredVersion damaged = stored(3, Level::local);
  damaged.damage = "bad bytes";
  StoredVersion in_doubt = stored(4, Level::none);
  in_doubt.in_doubt = true;
  EXPECT_EQ(retention_pin(disk_of({stored(1, Level::local), damaged, in_doubt}), run), 1u);
}

TEST(RetentionPin, ChangesLessAndLessOften) {
  Disk disk;
  std::vector<VersionNumber> changes;
  for (VersionNumber version = 1; version <= 10000; ++version) {
    disk[version] = row_of(stored(version, Level::local));
    const VersionNumber now = retention_pin(disk, run);
    if (changes.empty() || changes.back() != now) changes.push_back(now);
  }
  // Records of a random sequence: as many as the harmonic number of its length, 9.8, give or take
  // three standard deviations.
  EXPECT_GE(changes.size(), 3u);
  EXPECT_LE(changes.size(), 19u);
  EXPECT_TRUE(std::ranges::is_sorted(changes));
}

// A node whose parts become protected one after the other, and which tells the others of some. No
// version is pinned by its draw: none is local.
class RetentionPinOfProtected : public ::testing::Test {
 protected:
  std::set<VersionNumber> held() const {
    std::set<VersionNumber> all;
    for (VersionNumber number = 1; number <= 5; ++number) {
      if (versions_.is_pinned(number)) all.insert(number);
    }
    return all;
  }
  using Numbers = std::set<VersionNumber>;

  VersionTable versions_;
  Numbers told_;
  RetentionPin pin_{versions_, run,
                    [this](VersionNumber number) { return told_.contains(number); }};
};

TEST_F(RetentionPinOfProtected, HoldsWhatItHasToldUntilItHasToldOfANewerOne) {
  pin_.protected_here(1);
  told_.insert(1);
  pin_.choose();
  EXPECT_EQ(held(), Numbers{1});
  pin_.protected_here(2);
  pin_.choose();
  EXPECT_EQ(held(), (Numbers{1, 2})) << "no report of the second has gone out";
  pin_.protected_here(3);
  pin_.choose();
  EXPECT_EQ(held(), (Numbers{1, 3})) << "nobody counts on the second";
  told_.insert(3);
  pin_.choose();
  EXPECT_EQ(held(), Numbers{3});
}

TEST_F(RetentionPinOfProtected, HoldsWhatItHasToldSinceItLookedLast) {
  pin_.protected_here(1);
  told_.insert(1);
  pin_.protected_here(2);
  told_.insert(2);
  pin_.protected_here(3);
  EXPECT_EQ(held(), (Numbers{2, 3}));
}

TEST_F(RetentionPinOfProtected, HoldsNoneOnceANewerOneIsProtectedEverywhere) {
  pin_.protected_here(1);
  told_.insert(1);
  pin_.protected_here(2);
  versions_.found(stored(3, Level::protected_), Where::disk);
  pin_.choose();
  EXPECT_EQ(held(), Numbers{});
}

// A node that learns of its run's versions sooner or later than others, and copies one at a time.
struct PlayedNode {
  Disk disk;
  std::set<VersionNumber> done;
  VersionNumber copying = 0;
  VersionNumber announced = 0;
  unsigned left = 0;  // steps
  std::uint64_t late = 0;

  void retain(std::uint32_t keep, bool with_retention_pin) {
    const VersionNumber stays = with_retention_pin ? retention_pin(disk, run) : 0;
    std::vector<StoredVersion> all;
    for (const auto& [number, row] : disk) all.push_back(*row.disk);
    for (const VersionNumber number : expired(all, keep, announced)) {
      if (number != stays && number != copying) disk.erase(number);
    }
  }
  void copy(unsigned steps) {
    if (copying != 0 && --left == 0) {
      done.insert(copying);
      copying = 0;
    }
    if (copying != 0) return;
    for (const auto& [number, row] : disk) {
      if (row.announced >= Level::protected_ || done.contains(number)) continue;
      copying = number;
      left = steps;
      return;
    }
  }
};

// How many of 2000 versions become protected, one a step, if a copy takes `steps` and up to half of
// that more.
std::size_t protected_of(unsigned steps, std::uint32_t keep, bool with_retention_pin,
                         std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<PlayedNode> nodes(5);
  for (PlayedNode& node : nodes) node.late = random.below(3);
  std::size_t count = 0;
  for (VersionNumber newest = 1; newest <= 2000; ++newest) {
    for (PlayedNode& node : nodes) {
      if (newest > node.late) {
        const VersionNumber version = newest - node.late;
        node.disk[version] = row_of(stored(version, Level::local));
      }
      node.retain(keep, with_retention_pin);
      node.copy(steps + random.below(steps / 2 + 1));
    }
    const std::set<VersionNumber> candidates = nodes.front().done;
    for (const VersionNumber version : candidates) {
      const bool everywhere = std::ranges::all_of(nodes, [version](const PlayedNode& node) {
        return node.done.contains(version) && node.disk.contains(version);
      });
      if (!everywhere || nodes.front().disk.at(version).announced >= Level::protected_) continue;
      ++count;
      for (PlayedNode& node : nodes) {
        node.disk.at(version) = row_of(stored(version, Level::protected_));
        node.announced = std::max(node.announced, version);
      }
    }
  }
  return count;
}

TEST(RetentionPin, VersionsAreProtectedHoweverSlowlyTheyAreCopied) {
  for (const std::uint32_t keep : {1u, 2u, 4u}) {
    for (const unsigned steps : {1u, 3u, 8u, 25u, 80u}) {
      for (std::uint64_t seed = 1; seed <= 4; ++seed) {
        const std::size_t with = protected_of(steps, keep, true, seed);
        EXPECT_GE(with, 2000 / (12 * steps))
            << "keep " << keep << " steps " << steps << " seed " << seed;
      }
    }
  }
}

// What it is for: without it nothing newer than the first versions ever is.
TEST(RetentionPin, WithoutItHardlyAnyIs) {
  std::size_t without = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) without += protected_of(8, 2, false, seed);
  EXPECT_LE(without, 10u * 2000 / 12 / 8 / 2);
}

}  // namespace
}  // namespace backstay::agent
