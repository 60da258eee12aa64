// Versions of captured files that come many at a time: the store's thread seals, records and
// removes several together, and each as if it were alone.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>

#include "agent/disk/store.h"
#include "base/aligned_memory.h"
#include "base/checksum.h"
#include "format/names.h"
#include "io/memory.h"
#include "refusing_tier.h"
#include "store/catalog.h"
#include "tier/dir.h"

namespace backstay::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::uint32_t chunk_bytes = 4096;
const format::ObjectId captured_files(format::OwnerKind::writer, 1, format::ObjectKind::files);
const format::ObjectId rank_regions(0);

class StoreTogether : public ::testing::Test {
 protected:
  std::shared_ptr<tier::Tier> tier() {
    auto make_ring = [] { return io::make_memory_ring({.depth = 4, .seed = 1}); };
    return std::move(tier::open_dir_tier(disk_, make_ring, {.root = "/disk"}).value());
  }
  void open(VersionNumber version) {
    store_.take(OpenVersion{{version, /*run=*/7, 0, 1, 1, chunk_bytes}, chunk_bytes});
  }
  void write(VersionNumber version, format::ObjectId object = captured_files) {
    open(version);
    store_.take(
        WriteChunk{version, object, 0, memory_.span(), chunk_bytes, 0, checksum(memory_.span())});
    store_.take(SealVersion{version, 42, {{object, chunk_bytes}}});
  }
  void record(VersionNumber version) {
    format::CommitRecord record;
    for (const Event& event : all_) {
      const auto* sealed = std::get_if<VersionSealed>(&event);
      if (sealed != nullptr && sealed->stored.version == version) record = sealed->stored.record;
    }
    record.level = Level::local;
    store_.take(RecordVersion{record});
  }
  bool is_there(VersionNumber version) {
    return store::look_at(*tier(), "job", version).level == Level::local;
  }
  // What was posted since the call before, without the chunks.
  std::vector<std::string> news() {
    std::vector<std::string> words;
    for (const Event& event : std::exchange(events_, {})) {
      all_.push_back(event);
      if (const auto* sealed = std::get_if<VersionSealed>(&event)) {
        words.push_back(fmt::format("sealed {}", sealed->stored.version));
      } else if (const auto* recorded = std::get_if<VersionRecorded>(&event)) {
        words.push_back(fmt::format("recorded {}", recorded->stored.version));
      } else if (const auto* failed = std::get_if<VersionFailed>(&event)) {
        words.push_back(fmt::format("failed {}", failed->version));
      } else if (const auto* removed = std::get_if<Removed>(&event)) {
        words.push_back(fmt::format("removed {}", fmt::join(removed->versions, " ")));
      } else if (std::holds_alternative<Settled>(event)) {
        words.emplace_back("settled");
      }
    }
    return words;
  }

  io::MemoryFileSystem disk_;
  AlignedMemory memory_{chunk_bytes};
  std::shared_ptr<Warning> trouble_ = std::make_shared<Warning>();
  std::vector<Event> events_;
  std::deque<Event> all_;
  StoreWorker store_{
      "job",
      [this]() -> Result<std::unique_ptr<tier::Tier>> {
        return std::unique_ptr<tier::Tier>(std::make_unique<RefusingTier>(tier(), trouble_));
      },
      [this](Event event) { events_.push_back(std::move(event)); }, nullptr};
};

TEST_F(StoreTogether, AllOfThemAreSealedAndRecordedInTheirOrder) {
  for (VersionNumber version = 1; version <= 3; ++version) write(version);
  EXPECT_THAT(news(), IsEmpty()) << "the next one may follow";
  EXPECT_EQ(store_.wakes_ns(), 0U) << "but nothing has to";
  store_.carry_on(/*wait=*/true);
  EXPECT_THAT(news(), ElementsAre("sealed 1", "sealed 2", "sealed 3"));
  for (VersionNumber version = 1; version <= 3; ++version) record(version);
  store_.carry_on(/*wait=*/false);
  EXPECT_THAT(news(), IsEmpty());
  EXPECT_FALSE(is_there(1));
  store_.do_later();
  EXPECT_THAT(news(), ElementsAre("recorded 1", "recorded 2", "recorded 3"));
  for (VersionNumber version = 1; version <= 3; ++version) EXPECT_TRUE(is_there(version));
  store_.take(RemoveVersions{{1}});
  store_.take(RemoveVersions{{2, 9}});
  store_.do_later();
  EXPECT_THAT(news(), ElementsAre("removed 1 2 9"));
  EXPECT_FALSE(is_there(1));
  EXPECT_FALSE(is_there(2));
  EXPECT_TRUE(is_there(3));
  EXPECT_EQ(store_.wakes_ns(), no_deadline);
}

TEST_F(StoreTogether, OneThatFailsTakesNoneWithIt) {
  for (VersionNumber version = 1; version <= 3; ++version) write(version);
  store_.take(SealVersion{4, 42, {{captured_files, chunk_bytes}}});  // of one that failed before
  open(5);
  store_.take(SealVersion{5, 42, {{captured_files, chunk_bytes}}});  // its chunk is missing
  store_.do_later();
  EXPECT_THAT(news(), ElementsAre("sealed 1", "sealed 2", "sealed 3", "failed 5"));
  for (VersionNumber version = 1; version <= 3; ++version) record(version);
  store_.do_later();
  EXPECT_THAT(news(), ElementsAre("recorded 1", "recorded 2", "recorded 3"));
}

TEST_F(StoreTogether, WhatComesBehindThemInTheirOrderWaitsForThem) {
  write(1);
  store_.take(Settle{7});
  EXPECT_THAT(news(), ElementsAre("sealed 1", "settled"));
  write(2);
  store_.take(AbortVersion{2, 0});
  EXPECT_THAT(news(), ElementsAre("sealed 2")) << "a part that is prepared stays";
}

// It may be prepared, and the disk fails just then.
TEST_F(StoreTogether, WhatWillNotBeWrittenStaysWhereItsManifestCannotBeRead) {
  write(1);
  store_.do_later();
  EXPECT_THAT(news(), ElementsAre("sealed 1"));
  trouble_->failing_opens = 1;
  store_.take(AbortVersion{1, 0});
  EXPECT_EQ(trouble_->failing_opens, 0) << "it has looked";
  EXPECT_TRUE(tier()->open(format::manifest_name(format::version_folder("job", 1), 0)).ok());
}

// A full disk would refuse the second one, and take the version away with it.
TEST_F(StoreTogether, ARecordThatWasWrittenToMakeRoomIsNotWrittenAgain) {
  write(1);
  store_.do_later();
  EXPECT_THAT(news(), ElementsAre("sealed 1"));
  record(1);
  write(2);
  store_.do_later();
  EXPECT_THAT(news(), ElementsAre("sealed 2", "recorded 1"));
  int records = 0;
  trouble_->before_put = [&](const std::string& name) {
    records += name.ends_with("/commit.local") ? 1 : 0;
  };
  trouble_->full = trouble_->room_when_removed = true;
  Reclaim reclaim;
  reclaim.once_recorded = {2};
  reclaim.later = {1};
  store_.take(OpenVersion{{3, /*run=*/7, 0, 1, 1, chunk_bytes}, chunk_bytes, reclaim});
  EXPECT_EQ(records, 1) << "version 2 takes the place of version 1";
  EXPECT_TRUE(is_there(2));
  EXPECT_FALSE(is_there(1));
  EXPECT_THAT(news(), ElementsAre("removed 1"));
  record(2);
  store_.do_later();
  EXPECT_THAT(news(), ElementsAre("recorded 2"));
  EXPECT_EQ(records, 1);
}

// Its first try has failed, and its seal came all the same.
TEST_F(StoreTogether, AVersionThatIsOpenedAgainIsNotSealedByItsFormerSeal) {
  write(1);
  store_.do_later();
  trouble_->full = true;
  write(2);
  trouble_->full = false;
  write(2);
  store_.do_later();
  EXPECT_THAT(news(), ElementsAre("sealed 1", "failed 2", "sealed 2"));
}

TEST_F(StoreTogether, WhatWasOnlyHopedForNeedsNoRoom) {
  trouble_->room_bytes = 1 << 20;
  const VersionInfo info{1, /*run=*/7, 0, 1, 1, chunk_bytes};
  store_.take(OpenVersion{info, chunk_bytes, {}, /*hoped_bytes=*/1 << 30});
  store_.take(
      WriteChunk{1, captured_files, 0, memory_.span(), chunk_bytes, 0, checksum(memory_.span())});
  store_.take(SealVersion{1, 42, {{captured_files, chunk_bytes}}});
  store_.do_later();
  EXPECT_THAT(news(), ElementsAre("sealed 1"));
}

TEST_F(StoreTogether, SoManyAreEnough) {
  for (VersionNumber version = 1; version <= 40; ++version) write(version);
  EXPECT_EQ(news().size(), 32U);
  store_.finish();
  EXPECT_EQ(news().size(), 8U);
}

TEST_F(StoreTogether, VersionsOfRanksWaitForNothing) {
  write(1, rank_regions);
  EXPECT_THAT(news(), ElementsAre("sealed 1"));
  record(1);
  EXPECT_THAT(news(), ElementsAre("recorded 1"));
  store_.take(RemoveVersions{{1}});
  EXPECT_THAT(news(), ElementsAre("removed 1"));
}

}  // namespace
}  // namespace backstay::agent::testing
