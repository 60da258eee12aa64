// The transitions of docs/protocol/versions.md, by their numbers.
#include "agent/version/version_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "agent/version/retention.h"
#include "format/names.h"

namespace backstay::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr RunId run = 7;
constexpr NodeId self = 0;

StoredVersion stored(VersionNumber version, Level level, RunId of = run, std::uint32_t nodes = 2) {
  StoredVersion one;
  one.version = version;
  one.level = level;
  one.record.version = version;
  one.record.run = of;
  one.record.nodes = nodes;
  return one;
}

StoredVersion in_doubt(VersionNumber version, std::vector<NodeId> parts, RunId of = run) {
  StoredVersion one = stored(version, Level::none, of);
  one.in_doubt = true;
  one.parts = std::move(parts);
  return one;
}

class Table : public ::testing::Test {
 protected:
  Table() { table.begin_run(run, self, /*nodes=*/2, /*protects=*/true); }

  void become_prepared(VersionNumber version, std::uint32_t nodes = 2) {
    StoredVersion one = stored(version, Level::none, run, nodes);
    one.in_doubt = nodes > 1;
    table.prepared(one, self);
  }
  // Prepared, recorded and announced.
  void become(VersionNumber version, Level level) {
    if (table.find(version) == nullptr) become_prepared(version);
    table.recorded(stored(version, level));
    table.announced({version, run}, level);
  }
  VersionOrders orders() { return table.take_orders(); }
  const VersionRow& row(VersionNumber version) { return table.rows().at(version); }

  VersionTable table;
};

TEST_F(Table, T1WhatAScanFindsIsReportedAtTheLevelOfItsRecord) {
  table.found(stored(3, Level::protected_, 5), Where::disk);
  EXPECT_EQ(row(3).announced, Level::protected_);
  EXPECT_TRUE(row(3).good());
  EXPECT_TRUE(row(3).is_listed());
  StoredVersion damaged = stored(4, Level::none);
  damaged.damage = "bad record";
  table.found(damaged, Where::disk);
  EXPECT_FALSE(row(4).good());
  EXPECT_TRUE(row(4).is_listed()) << "users must see it";
  table.found(in_doubt(5, {0, 1}), Where::disk);
  EXPECT_TRUE(row(5).in_doubt());
  EXPECT_FALSE(row(5).is_listed());
  EXPECT_THAT(orders().changed, UnorderedElementsAre(3, 4, 5));
}

TEST_F(Table, T2APreparedVersionIsInDoubtWhereItsRunHasSeveralNodes) {
  become_prepared(1);
  become_prepared(2, /*nodes=*/1);
  EXPECT_TRUE(row(1).in_doubt());
  EXPECT_FALSE(row(2).in_doubt());
  for (const VersionNumber version : {1u, 2u}) {
    EXPECT_TRUE(row(version).is_of(run));
    EXPECT_FALSE(row(version).is_listed()) << "no level may be reported";
  }
  EXPECT_THAT(orders().changed, UnorderedElementsAre(1, 2));
}

TEST_F(Table, T3AFailedWriteLeavesNothingOfOneNode) {
  become_prepared(1, /*nodes=*/1);
  table.write_failed(1);
  EXPECT_EQ(table.find(1), nullptr);
  become_prepared(2);
  table.write_failed(2);
  EXPECT_NE(table.find(2), nullptr) << "copies of other nodes' parts may be here";
  become(3, Level::local);
  table.write_failed(3);
  EXPECT_TRUE(row(3).good());
}

TEST_F(Table, T4ARecordIsNoAnnouncement) {
  become_prepared(1);
  table.recorded(stored(1, Level::local));
  EXPECT_FALSE(row(1).in_doubt());
  EXPECT_TRUE(row(1).awaits_announcement());
  EXPECT_FALSE(row(1).is_listed());
  table.recorded(stored(1, Level::protected_));
  table.recorded(stored(1, Level::local));
  EXPECT_EQ(row(1).disk->level, Level::protected_) << "a lower record takes nothing back";
  table.recorded(stored(9, Level::local));
  EXPECT_EQ(table.find(9), nullptr) << "it was removed meanwhile";
}

TEST_F(Table, T5T6AFailedRecordIsTriedOnceATick) {
  become_prepared(1);
  table.ordered(1, StoreOrder::record);
  EXPECT_TRUE(row(1).recording);
  table.record_failed(1, Level::local, Error(Code::no_space, "full"));
  EXPECT_FALSE(row(1).recording);
  ASSERT_TRUE(row(1).unrecorded);
  EXPECT_EQ(row(1).unrecorded->code, Code::no_space);
  EXPECT_THAT(table.take_retries(), ElementsAre(std::pair(VersionNumber{1}, Level::local)));
  EXPECT_THAT(table.take_retries(), IsEmpty());
  EXPECT_TRUE(row(1).unrecorded) << "until it is written";
  table.record_failed(1, Level::local, Error(Code::no_space, "full"));
  table.ordered(1, StoreOrder::remove);
  EXPECT_THAT(table.take_retries(), IsEmpty()) << "its folder may be gone";
  table.ordered(1, StoreOrder::remove, false);
  table.recorded(stored(1, Level::local));
  EXPECT_FALSE(row(1).unrecorded);
  EXPECT_THAT(table.take_retries(), IsEmpty());
}

// Both orders may be on their way: the others hear of the higher level once it is recorded here.
TEST_F(Table, WhatIsToBeRecordedHigherStays) {
  for (const VersionNumber version : {1, 2}) {
    become_prepared(version);
    table.ordered(version, StoreOrder::record);
    if (version == 1) table.ordered(version, StoreOrder::record);
    table.recorded(stored(version, Level::local));
  }
  EXPECT_TRUE(row(1).recording);
  EXPECT_THAT(expired(table, 1), IsEmpty());
  table.ordered(1, StoreOrder::record, false);
  EXPECT_THAT(expired(table, 1), ElementsAre(1));
}

TEST_F(Table, T7T8ALevelIsReportedOnceItIsAnnounced) {
  become_prepared(1);
  table.announced({1, run}, Level::local);
  EXPECT_EQ(row(1).announced, Level::none) << "this node has no record";
  table.recorded(stored(1, Level::local));
  table.announced({1, run + 1}, Level::local);
  EXPECT_EQ(row(1).announced, Level::none) << "of another run";
  (void)orders();
  table.announced({1, run}, Level::local);
  VersionOrders first = orders();
  ASSERT_EQ(first.announced.size(), 1u);
  EXPECT_EQ(first.announced[0].version.level, Level::local);
  EXPECT_EQ(first.announced[0].before, Level::none);
  EXPECT_TRUE(first.retain);
  EXPECT_THAT(first.changed, ElementsAre(1));
  table.announced({1, run}, Level::local);
  EXPECT_TRUE(orders().empty()) << "it is no news";
  table.replicated(1);
  EXPECT_TRUE(row(1).protected_here);
  table.recorded(stored(1, Level::protected_));
  table.announced({1, run}, Level::protected_);
  EXPECT_EQ(orders().announced.at(0).before, Level::local);
  EXPECT_FALSE(row(1).protected_here);
  EXPECT_EQ(table.newest_announced(), 1u);
}

TEST_F(Table, T9AProtectedRecordOfTheSameRunIsReportedAsLocalFirst) {
  table.found(stored(1, Level::protected_), Where::disk);
  table.found(stored(2, Level::protected_, run + 1), Where::disk);
  table.begin_run(run, self, 2, true);
  EXPECT_EQ(row(1).announced, Level::local);
  EXPECT_TRUE(row(1).awaits_announcement());
  EXPECT_EQ(row(2).announced, Level::protected_) << "of another run";
  table.announced({1, run}, Level::protected_);
  EXPECT_EQ(row(1).announced, Level::protected_);
}

TEST_F(Table, T10CopiesForOthersAreNoPartOfThisNode) {
  table.found(in_doubt(1, {1}), Where::disk);
  table.found(in_doubt(2, {0, 1}), Where::disk);
  table.found(in_doubt(3, {1}, run + 1), Where::disk);
  table.begin_run(run, self, 2, true);
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_TRUE(row(2).in_doubt());
  EXPECT_TRUE(row(3).in_doubt()) << "in another run this node had another number";
}

TEST_F(Table, T10RetentionRemovesCopiesForOthersToo) {
  StoredVersion copy = in_doubt(2, {1});
  copy.needs = {{1, run}};
  table.found(copy, Where::disk);
  table.begin_run(run, self, 2, true);
  EXPECT_EQ(table.needed_by({1, run}), 2u);
  become(3, Level::local);
  EXPECT_THAT(expired(table, 2), IsEmpty());
  become(4, Level::local);
  EXPECT_THAT(expired(table, 2), ElementsAre(2));
  table.take_orders();
  table.removed(2, Where::disk);
  EXPECT_THAT(table.take_orders().gone, ElementsAre(2)) << "the rooms forget its files";
  EXPECT_THAT(expired(table, 2), IsEmpty());
  EXPECT_EQ(table.needed_by({1, run}), 0u);
}

TEST_F(Table, T10ACopyThatGetsItsRecordIsAVersionAsAnyOther) {
  table.found(in_doubt(1, {1}), Where::disk);
  table.begin_run(run, self, 2, true);
  EXPECT_THAT(table.copies(), ::testing::SizeIs(1));
  table.found(stored(1, Level::local), Where::disk);
  EXPECT_THAT(table.copies(), IsEmpty());
  EXPECT_TRUE(row(1).good());
}

// The nodes that would have announced it ended first: a restart may take it all the same.
TEST_F(Table, T10aWhatIsRecordedAndWasNotAnnouncedCountsAsLocalInTheNextRun) {
  become_prepared(1);
  table.recorded(stored(1, Level::protected_));
  become_prepared(2);
  table.begin_run(run + 1, self, 2, true);
  EXPECT_EQ(row(1).announced, Level::local);
  EXPECT_TRUE(row(1).awaits_announcement()) << "its level protected may still be announced";
  EXPECT_FALSE(row(2).is_listed()) << "it is in doubt";
}

TEST_F(Table, T11ADamagedVersionIsNotGoodAndStaysListed) {
  become(1, Level::local);
  table.found(stored(1, Level::durable), Where::shared);
  (void)orders();
  table.quarantined(1, Where::disk, "bad bytes");
  EXPECT_FALSE(row(1).good());
  EXPECT_TRUE(row(1).is_listed());
  EXPECT_TRUE(row(1).durable()) << "the columns are independent";
  EXPECT_THAT(orders().changed, ElementsAre(1));
  table.quarantined(1, Where::shared, "bad bytes");
  EXPECT_FALSE(row(1).durable());
  table.quarantined(9, Where::disk, "bad bytes");
  EXPECT_EQ(table.find(9), nullptr);
}

TEST_F(Table, T12NothingOlderIsRemovedForADoubtfulVersion) {
  for (const VersionNumber version : {1u, 2u, 3u}) become(version, Level::local);
  EXPECT_THAT(expired(table, 2), ElementsAre(1));
  table.doubted(3, Where::disk, true);
  EXPECT_THAT(expired(table, 2), IsEmpty());
  table.doubted(3, Where::disk, false);
  EXPECT_THAT(expired(table, 2), ElementsAre(1));
}

TEST_F(Table, T13WhatIsBeingRemovedIsNotOrderedAgain) {
  for (const VersionNumber version : {1u, 2u, 3u}) become(version, Level::local);
  table.ordered(1, StoreOrder::remove);
  EXPECT_THAT(expired(table, 2), IsEmpty());
  table.ordered(1, StoreOrder::remove, false);
  EXPECT_THAT(expired(table, 2), ElementsAre(1)) << "the store could not remove it";
}

TEST_F(Table, T13AVersionIsLeavingUntilTheStoreHasAnswered) {
  become(1, Level::local);
  table.found(in_doubt(2, {5}), Where::disk);
  table.begin_run(run, 0, 2, true);
  ASSERT_TRUE(table.copies().contains(2));
  for (const VersionNumber version : {1, 2}) {
    EXPECT_FALSE(is_leaving(table, version));
    table.ordered(version, StoreOrder::remove);
    EXPECT_TRUE(is_leaving(table, version));
    table.ordered(version, StoreOrder::remove, false);
    EXPECT_FALSE(is_leaving(table, version)) << "the store could not";
    table.ordered(version, StoreOrder::remove);
    table.removed(version, Where::disk);
    EXPECT_FALSE(is_leaving(table, version));
  }
}

TEST_F(Table, T14ARemovedVersionLeavesSharedStorageAlone) {
  become(1, Level::protected_);
  become(2, Level::local);
  table.record_failed(1, Level::protected_, Error(Code::io, "fails"));
  table.found(stored(1, Level::durable), Where::shared);
  (void)orders();
  table.removed(1, Where::disk);
  EXPECT_EQ(row(1).announced, Level::none);
  EXPECT_FALSE(row(1).disk);
  EXPECT_FALSE(row(1).unrecorded);
  EXPECT_TRUE(row(1).durable());
  table.removed(2, Where::disk);
  EXPECT_EQ(table.find(2), nullptr);
  const VersionOrders gone = orders();
  EXPECT_THAT(gone.gone, ElementsAre(1, 2));
  EXPECT_THAT(gone.changed, UnorderedElementsAre(1, 2));
  table.removed(1, Where::disk);
  EXPECT_TRUE(orders().empty()) << "one order for each removal";
}

TEST_F(Table, T15T16T17SharedStorageHasItsOwnColumn) {
  table.found(stored(1, Level::durable), Where::shared);
  EXPECT_TRUE(row(1).durable());
  EXPECT_FALSE(row(1).is_listed()) << "nothing of it is on this disk";
  become(2, Level::local);
  table.found(stored(2, Level::durable), Where::shared);
  (void)orders();
  table.removed(2, Where::shared);
  EXPECT_TRUE(row(2).good());
  EXPECT_THAT(orders().gone, IsEmpty()) << "it is still on the disk";
  table.found(stored(2, Level::durable), Where::shared);
  table.forget_shared();
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_FALSE(row(2).shared);
}

TEST_F(Table, APinKeepsAVersionUntilTheLastOneEnds) {
  for (const VersionNumber version : {1u, 2u, 3u}) become(version, Level::local);
  VersionPin one(table, 1, PinReason::encoding);
  VersionPin two(table, 1, PinReason::replicating);
  EXPECT_TRUE(table.is_pinned(1));
  VersionPin moved(std::move(one));
  EXPECT_EQ(one.version(), 0u);
  EXPECT_EQ(moved.version(), 1u);
  moved.release();
  moved.release();
  EXPECT_THAT(expired(table, 2), IsEmpty());
  two = VersionPin(table, 2, PinReason::replicating);
  EXPECT_THAT(expired(table, 2), ElementsAre(1));
  {
    const VersionPin other(table, 2, PinReason::replicating);
    two.release();
    EXPECT_TRUE(table.is_pinned(2)) << "several may need a version for one reason";
  }
  EXPECT_FALSE(table.is_pinned(2));
}

// A version of one node that is on its way to the disk takes the place of an older one, if it
// arrives.
TEST_F(Table, RoomIsMadeForVersionsThatWillHaveTheirRecord) {
  table.begin_run(run, self, 1, false);
  become(1, Level::local);
  become(2, Level::local);
  EXPECT_THAT(reclaimable(table, 2, {}).versions, IsEmpty());
  const Reclaim with = reclaimable(table, 2, {3});
  EXPECT_THAT(with.versions, IsEmpty()) << "3 may fail";
  EXPECT_THAT(with.later, ElementsAre(1));
  EXPECT_THAT(with.once_recorded, ElementsAre(3));
  become_prepared(3, /*nodes=*/1);
  EXPECT_THAT(reclaimable(table, 2, {3}).later, ElementsAre(1));
  EXPECT_THAT(reclaimable(table, 1, {3}).versions, ElementsAre(1)) << "also if 3 fails";
  EXPECT_THAT(reclaimable(table, 1, {3}).later, UnorderedElementsAre(1, 2));
  const VersionPin pin(table, 1, PinReason::copying);
  EXPECT_THAT(reclaimable(table, 2, {3}).later, IsEmpty());
}

TEST_F(Table, OfSharedStorageOlderOnesGoOnceTheNextIsThere) {
  for (const VersionNumber version : {1u, 2u, 3u}) {
    table.found(stored(version, Level::durable), Where::shared);
  }
  const format::CommitRecord next = stored(4, Level::durable).record;
  EXPECT_THAT(shared_expired(table, next, 2), UnorderedElementsAre(1, 2));
  table.quarantined(3, Where::shared, "bad bytes");
  EXPECT_THAT(shared_expired(table, next, 2), UnorderedElementsAre(1, 3));
}

TEST_F(Table, OfSharedStorageFilesThatAreNotAtHomeStay) {
  for (const VersionNumber version : {1u, 2u, 3u}) {
    table.found(stored(version, Level::durable), Where::shared);
  }
  const format::CommitRecord next = stored(4, Level::durable).record;
  VersionPin pin(table, 1, PinReason::not_home);
  EXPECT_THAT(shared_expired(table, next, 2), ElementsAre(2));
  pin.release();
  EXPECT_THAT(shared_expired(table, next, 2), UnorderedElementsAre(1, 2));
}

TEST_F(Table, WhereNothingIsProtectedAllThatIsRecordedCounts) {
  table.found(stored(1, Level::protected_, 5), Where::disk);
  table.found(stored(2, Level::protected_, 5), Where::disk);
  table.begin_run(run, self, 2, /*protects=*/true);
  EXPECT_THAT(expired(table, 1), IsEmpty()) << "which of them other nodes have is not known";
  table.begin_run(run, self, 2, /*protects=*/false);
  EXPECT_EQ(table.newest_announced(), format::version_max);
  EXPECT_THAT(expired(table, 1), ElementsAre(1));
}

}  // namespace
}  // namespace backstay::agent::testing
