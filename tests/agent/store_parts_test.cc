// A version's folder on one node of several: its own part, and copies of others' that were kept
// there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>

#include "agent/disk/store.h"
#include "format/names.h"
#include "format/segment.h"
#include "io/memory.h"
#include "store/catalog.h"
#include "tier/dir.h"

namespace backstay::agent::testing {
namespace {

using ::testing::UnorderedElementsAre;

class StoreParts : public ::testing::Test {
 protected:
  static constexpr NodeId self = 0;
  static constexpr NodeId other = 1;

  std::unique_ptr<tier::Tier> tier() {
    auto make_ring = [] { return io::make_memory_ring({.depth = 4, .seed = 1}); };
    return std::move(tier::open_dir_tier(disk_, make_ring, {.root = "/disk"}).value());
  }
  static std::string folder(VersionNumber version) {
    return format::version_folder("job", version);
  }
  static void open(StoreWorker& store, VersionNumber version, NodeId node) {
    store.handle(OpenVersion{{version, /*run=*/7, node, 2, 2, 4096}, 4096});
  }
  static void write(StoreWorker& store, VersionNumber version, NodeId node) {
    open(store, version, node);
    store.handle(SealVersion{version, 42, {{node, 0}}});
  }
  // What the other node wrote, as a keeper puts it there.
  void keep(VersionNumber version) { write(others_, version, other); }
  // Chunks that were promised are missing.
  void fail(VersionNumber version) {
    open(store_, version, self);
    store_.handle(SealVersion{version, 42, {{self, 100}}});
    EXPECT_TRUE(last<VersionFailed>());
  }
  bool is_there(VersionNumber version, NodeId node) {
    return tier()->open(format::manifest_name(folder(version), node)).ok() &&
           tier()->open(format::segment_name(folder(version), node)).ok();
  }
  template <typename Wanted>
  std::optional<Wanted> last() const {
    const auto* wanted = events_.empty() ? nullptr : std::get_if<Wanted>(&events_.back());
    return wanted == nullptr ? std::nullopt : std::optional(*wanted);
  }

  io::MemoryFileSystem disk_;
  std::deque<Event> events_;
  StoreWorker store_{"job", [this]() -> Result<std::unique_ptr<tier::Tier>> { return tier(); },
                     [this](Event event) { events_.push_back(std::move(event)); }, nullptr};
  StoreWorker others_{"job", [this]() -> Result<std::unique_ptr<tier::Tier>> { return tier(); },
                      [](const Event&) {}, nullptr};
};

// Their owners count on them since they were told that they are kept.
TEST_F(StoreParts, APartThatCannotBeWrittenTakesNoCopiesWithIt) {
  keep(1);
  fail(1);
  EXPECT_TRUE(is_there(1, other));
  EXPECT_FALSE(tier()->open(format::segment_name(folder(1), self)).ok());
}

TEST_F(StoreParts, AVersionThatWillNotBeWrittenLeavesNothing) {
  fail(1);
  EXPECT_TRUE(tier()->list("job")->empty()) << "there were no copies";
  keep(1);
  fail(1);
  store_.handle(AbortVersion{1, self});
  open(store_, 2, self);
  store_.handle(AbortVersion{2, self});
  EXPECT_TRUE(tier()->list("job")->empty());
  write(store_, 3, self);
  store_.handle(AbortVersion{3, self});
  EXPECT_TRUE(is_there(3, self)) << "it was written after all";
}

TEST_F(StoreParts, OnlyItsOwnPartIsRecorded) {
  keep(1);
  format::CommitRecord record;
  record.job = "job";
  record.version = 1;
  record.nodes = record.ranks = 2;
  record.level = Level::protected_;
  store_.handle(RecordVersion{record, self});
  ASSERT_TRUE(last<RecordFailed>());
  EXPECT_EQ(last<RecordFailed>()->error.code(), Code::not_found);
  EXPECT_EQ(store::look_at(*tier(), "job", 1).level, Level::none);
  write(store_, 2, self);
  ASSERT_TRUE(last<VersionSealed>());
  record = last<VersionSealed>()->stored.record;
  for (const Level level : {Level::local, Level::protected_}) {
    record.level = level;
    store_.handle(RecordVersion{record, self});
    EXPECT_TRUE(last<VersionRecorded>()) << level_name(level);
  }
}

TEST_F(StoreParts, AScanTellsWhosePartsOfAnUndecidedVersionAreThere) {
  keep(1);
  keep(2);
  write(store_, 2, self);
  store_.handle(ScanJob{});
  ASSERT_TRUE(last<Scanned>() && last<Scanned>()->versions.ok());
  const std::vector<StoredVersion> found = *last<Scanned>()->versions;
  ASSERT_EQ(found.size(), 2u);
  EXPECT_THAT(found[0].parts, UnorderedElementsAre(other));
  EXPECT_THAT(found[1].parts, UnorderedElementsAre(self, other));
}

}  // namespace
}  // namespace backstay::agent::testing
