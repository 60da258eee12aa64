// Versions that need older ones: what the table knows of that, and what retention makes of it.
// Pure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "agent/version/held_files.h"
#include "agent/version/retention.h"
#include "agent/version/version_table.h"
#include "base/random.h"
#include "store/needed_files.h"

namespace backstay::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr RunId run = 7;
constexpr NodeId self = 0;
using Needs = std::vector<format::Need>;

StoredVersion stored(VersionNumber version, Needs needs, Level level = Level::local) {
  StoredVersion one;
  one.version = version;
  one.level = level;
  one.record.version = version;
  one.record.run = run;
  one.record.level = level;
  one.record.needs = std::move(needs);
  return one;
}

format::CommitRecord next(VersionNumber version, Needs needs = {}) {
  return stored(version, std::move(needs), Level::durable).record;
}

class NeedsTest : public ::testing::Test {
 protected:
  NeedsTest() { table.begin_run(run, self, /*nodes=*/1, /*protects=*/false); }
  void become(VersionNumber version, Needs needs = {}) {
    table.prepared(stored(version, needs, Level::none), self);
    table.recorded(stored(version, needs));
    table.announced({version, run}, Level::local);
  }
  VersionTable table;
};

TEST_F(NeedsTest, WhatAKeptVersionNeedsStays) {
  become(1);
  become(2);
  become(3, {{1, run}});
  EXPECT_THAT(expired(table, 1), ElementsAre(2));
  EXPECT_EQ(table.needed_by({1, run}), 3u);
  EXPECT_EQ(table.needed_by({2, run}), 0u);
  EXPECT_EQ(table.needed_by({3, run}), 0u);
  become(4);
  EXPECT_THAT(expired(table, 1), ElementsAre(3, 2, 1)) << "the newest first";
  EXPECT_THAT(expired(table, 2), ElementsAre(2));
}

// A kept version is whole: what it needs is a version of its own, and stays one.
TEST_F(NeedsTest, AChainStaysAsFarAsItIsNeeded) {
  become(1);
  become(2, {{1, run}});
  become(3, {{2, run}});
  become(4);
  become(5, {{3, run}});
  EXPECT_THAT(expired(table, 1), ElementsAre(4));
  become(6);
  EXPECT_THAT(expired(table, 2), ElementsAre(4));
  become(7);
  EXPECT_THAT(expired(table, 2), ElementsAre(5, 4, 3, 2, 1));
}

TEST_F(NeedsTest, APinnedVersionKeepsWhatItNeeds) {
  become(1);
  become(2, {{1, run}});
  become(3);
  VersionPin pin(table, 2, PinReason::copying);
  EXPECT_THAT(expired(table, 1), IsEmpty());
  pin.release();
  EXPECT_THAT(expired(table, 1), ElementsAre(2, 1));
}

// The store may refuse: a restart reads the version, or the disk fails.
TEST_F(NeedsTest, OneThatIsOrderedToGoKeepsWhatItNeedsUntilItIsGone) {
  become(1);
  become(2, {{1, run}});
  become(3);
  table.ordered(2, StoreOrder::remove);
  EXPECT_THAT(expired(table, 1), IsEmpty());
  table.ordered(2, StoreOrder::remove, false);
  EXPECT_THAT(expired(table, 1), ElementsAre(2, 1));
  (void)table.take_orders();
  table.removed(2, Where::disk);
  EXPECT_TRUE(table.take_orders().retain) << "what it needed may go";
  EXPECT_THAT(expired(table, 1), ElementsAre(1));
}

TEST_F(NeedsTest, AVersionInDoubtKeepsWhatItNeeds) {
  become(1);
  become(2);
  StoredVersion in_doubt = stored(3, {{1, run}}, Level::none);
  in_doubt.record.nodes = 2;
  in_doubt.in_doubt = true;
  table.prepared(in_doubt, self);
  EXPECT_THAT(expired(table, 1), IsEmpty());
}

TEST_F(NeedsTest, OneThatCouldNotBeWrittenNeedsNothing) {
  become(1);
  become(2);
  table.prepared(stored(3, {{1, run}}, Level::none), self);
  EXPECT_THAT(expired(table, 1), IsEmpty());
  (void)table.take_orders();
  table.write_failed(3);
  EXPECT_TRUE(table.take_orders().retain);
  EXPECT_THAT(expired(table, 1), ElementsAre(1));
}

TEST_F(NeedsTest, AVersionOfAnotherRunWithThatNumberIsNotNeeded) {
  become(1);
  become(2, {{1, run + 1}});
  EXPECT_EQ(table.needed_by({1, run}), 0u);
  EXPECT_EQ(table.needed_by({1, 0}), 2u) << "its record cannot be read";
  EXPECT_THAT(expired(table, 1), ElementsAre(1));
}

// The record of a node has the needs of its own part alone.
TEST_F(NeedsTest, CopiesForOtherNodesKeepWhatTheyNeed) {
  become(1);
  become(2);
  StoredVersion with_copies = stored(3, {});
  with_copies.needs = {{1, run}};
  table.found(with_copies, Where::disk);
  EXPECT_THAT(expired(table, 1), ElementsAre(2)) << "as a scan finds it";
  table.removed(3, Where::disk);
  EXPECT_THAT(expired(table, 1), ElementsAre(1));
  table.needs({4, run}, Needs{{1, run}});
  EXPECT_THAT(expired(table, 1), IsEmpty()) << "the copy came before this node's own part";
  become(4);
  EXPECT_THAT(expired(table, 1), ElementsAre(2));
}

TEST_F(NeedsTest, WhereANewVersionFindsNoRoomWhatIsNeededStays) {
  become(1);
  become(2);
  become(3, {{1, run}});
  EXPECT_THAT(reclaimable(table, 1, {}).versions, ElementsAre(2));
  EXPECT_THAT(reclaimable(table, 1, {4}).later, ElementsAre(3, 2, 1));
}

TEST_F(NeedsTest, SharedStorageKeepsWhatItsVersionsNeed) {
  table.found(stored(1, {}, Level::durable), Where::shared);
  table.found(stored(2, {}, Level::durable), Where::shared);
  table.found(stored(3, {{1, run}}, Level::durable), Where::shared);
  EXPECT_THAT(shared_expired(table, next(4), 2), ElementsAre(2));
  EXPECT_THAT(shared_expired(table, next(4), 1), ElementsAre(3, 2, 1));
  EXPECT_THAT(shared_expired(table, next(4, {{3, run}}), 1), ElementsAre(2));
}

// It is copied there for that one, and would be removed and copied without end.
TEST_F(NeedsTest, SharedStorageKeepsWhatTheNextVersionsWillNeed) {
  become(2);
  become(3);
  become(6, {{2, run}, {3, run}});
  table.found(stored(2, {}, Level::durable), Where::shared);
  table.found(stored(5, {}, Level::durable), Where::shared);
  EXPECT_THAT(shared_expired(table, next(3), 1), IsEmpty());
  table.found(stored(3, {}, Level::durable), Where::shared);
  EXPECT_THAT(shared_expired(table, next(6, {{2, run}, {3, run}}), 1), ElementsAre(5));
}

// A newer one was copied before it, so it is not copied any more.
TEST_F(NeedsTest, SharedStorageKeepsNothingForAVersionThatHasLostItsTurn) {
  become(1);
  become(3, {{1, run}});
  table.found(stored(1, {}, Level::durable), Where::shared);
  EXPECT_THAT(shared_expired(table, next(2), 1), IsEmpty());
  EXPECT_THAT(shared_expired(table, next(4), 1), ElementsAre(1));
}

// Whatever needs what: nothing goes that a version which stays needs, and what may go does.
TEST_F(NeedsTest, RandomChains) {
  constexpr int rounds = 300;
  SplitMix64 random(1);
  for (int round = 0; round < rounds; ++round) {
    VersionTable many;
    many.begin_run(run, self, 1, false);
    std::map<VersionNumber, Needs> needs;
    const auto count = 2 + random.next() % 12;
    for (VersionNumber version = 1; version <= count; ++version) {
      for (VersionNumber older = 1; older < version; ++older) {
        if (random.next() % 4 == 0) needs[version].push_back({older, run});
      }
      many.prepared(stored(version, needs[version], Level::none), self);
      many.recorded(stored(version, needs[version]));
      many.announced({version, run}, Level::local);
    }
    const auto keep = static_cast<std::uint32_t>(1 + random.next() % 3);
    std::set<VersionNumber> stays;
    for (VersionNumber version = count; version > 0 && stays.size() < keep; --version) {
      stays.insert(version);
    }
    for (VersionNumber version = count; version > 0; --version) {
      if (!stays.contains(version)) continue;
      for (const format::Need& need : needs[version]) stays.insert(need.version);
    }
    std::set<VersionNumber> left;
    for (VersionNumber version = 1; version <= count; ++version) left.insert(version);
    for (const VersionNumber gone : expired(many, keep)) left.erase(gone);
    ASSERT_EQ(left, stays) << "round " << round;
  }
}

TEST(NeededFiles, AreThoseOfTheChunks) {
  format::Manifest manifest;
  manifest.version = 9;
  manifest.run = run;
  manifest.node = 2;
  manifest.needs = {{3, 5}, {7, run}};
  const auto chunk = [](std::uint32_t need, NodeId node) {
    format::ChunkEntry one;
    one.need = need;
    one.node = node;
    return one;
  };
  manifest.chunks = {chunk(2, 1), chunk(0, 0), chunk(1, 4), chunk(2, 1), chunk(2, 0)};
  EXPECT_THAT(store::needed_files(manifest),
              ElementsAre(FileOf{3, 5, 4}, FileOf{7, run, 0}, FileOf{7, run, 1}));
  EXPECT_EQ(store::needs_of(store::needed_files(manifest)), manifest.needs);
  EXPECT_EQ(store::file_with(manifest, manifest.chunks[1]), (FileOf{9, run, 2}));
}

// Version 3 of the group needs version 2, whose parity came after version 1 had been removed here:
// no other node could make its file of version 1 again, and so not that of version 2.
TEST(NeedsOfParity, CountInAllSteps) {
  HeldFiles held;
  const NodeId other = self + 1;
  const auto add = [&](VersionNumber version, bool parity, std::vector<FileOf> needs = {}) {
    HeldFile one;
    one.file = {version, run, self, parity};
    one.needs = std::move(needs);
    if (parity) one.of = {{self, other}, 1};
    held.add(one);
  };
  const FileOf newest{3, run, self, /*parity=*/true};
  add(3, true, {{2, run, other}});
  EXPECT_EQ(held.needs_without_parity(newest), 2u);
  add(2, true, {{1, run, other}});
  EXPECT_EQ(held.needs_without_parity(newest), 2u) << "its own file of it is part of the group's";
  add(2, false);
  EXPECT_EQ(held.needs_without_parity(newest), 1u);
  add(1, true);
  EXPECT_EQ(held.needs_without_parity(newest), 1u);
  add(1, false);
  EXPECT_EQ(held.needs_without_parity(newest), std::nullopt);
  add(1, true, {{0, run - 1, other}});
  EXPECT_EQ(held.needs_without_parity(newest), 0u) << "nothing of that run is here";
}

// A run goes on from a version of an earlier one: its parity counts where the same nodes would make
// up for as much.
TEST(NeedsOfParity, CountParityOfAnEarlierRunWhereItIsAsGood) {
  constexpr RunId earlier = run - 1;
  const FileOf newest{3, run, self, /*parity=*/true};
  const auto lacking = [&](NodeId needed, const store::ParityOf& older) {
    HeldFiles held;
    HeldFile one;
    one.file = newest;
    one.of = {{self, 1, 2, 3}, 2};
    one.needs = {{2, earlier, needed}};
    held.add(one);
    HeldFile its_parity;
    its_parity.file = {2, earlier, self, /*parity=*/true};
    its_parity.of = older;
    held.add(its_parity);
    EXPECT_EQ(held.needs_without_parity(newest), 2u) << "its own file of it is not here";
    HeldFile own;
    own.file = {2, earlier, self};
    held.add(own);
    return held.needs_without_parity(newest).has_value();
  };
  EXPECT_FALSE(lacking(1, {{self, 1, 2, 3}, 2}));
  EXPECT_FALSE(lacking(1, {{self, 1, 2, 3}, 3})) << "it makes up for more";
  EXPECT_TRUE(lacking(1, {{self, 1, 2, 3}, 1})) << "it makes up for less";
  EXPECT_TRUE(lacking(1, {{self, 1, 2}, 2})) << "of another group";
  EXPECT_TRUE(lacking(1, {{self, 2, 1, 3}, 2})) << "in another order on the ring";
  EXPECT_TRUE(lacking(4, {{self, 1, 2, 3}, 2})) << "the file is another group's";
}

}  // namespace
}  // namespace backstay::agent::testing
