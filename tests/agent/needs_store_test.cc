// Versions that need older ones on a disk in memory: how the store writes, reads and removes them,
// and how they are copied.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>

#include "agent/disk/store.h"
#include "base/aligned_memory.h"
#include "base/checksum.h"
#include "format/names.h"
#include "io/memory.h"
#include "store/needed_files.h"
#include "store/version_copy.h"
#include "tier/dir.h"

namespace backstay::agent::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint32_t chunk_bytes = 4096;
constexpr RunId run = 7;

class StoreNeeds : public ::testing::Test {
 protected:
  static std::unique_ptr<tier::Tier> tier_on(io::MemoryFileSystem& disk) {
    auto make_ring = [] { return io::make_memory_ring({.depth = 4, .seed = 1}); };
    return std::move(tier::open_dir_tier(disk, make_ring, {.root = "/disk"}).value());
  }
  std::unique_ptr<tier::Tier> tier() { return tier_on(disk_); }

  // Two chunks of rank 0: the first says which version it is, the second lies in `older`.
  void seal(VersionNumber version, std::optional<VersionNumber> older = {}) {
    const std::uint32_t written = older ? 1 : 2;
    store_.handle(OpenVersion{{version, run, 0, 1, 1, chunk_bytes}, 8192});
    AlignedMemory memory(chunk_bytes);
    for (std::uint32_t chunk = 0; chunk < written; ++chunk) {
      for (auto& byte : memory.span()) byte = static_cast<std::byte>(version * 16 + chunk);
      store_.handle(WriteChunk{version, 0, chunk, memory.span(), chunk_bytes,
                               std::uint64_t{chunk} * chunk_bytes, checksum(memory.span())});
      while (store_.busy()) store_.reap(true);
    }
    SealVersion command{version, 42, {{0, 2 * chunk_bytes}}};
    if (older) {
      const auto manifest = read(*older);
      format::ChunkEntry chunk = manifest.chunks.at(1);
      const FileOf file = store::file_with(manifest, chunk);
      chunk.need = 1;
      command.older = {{{file.version, file.run}}, {chunk}};
    }
    store_.handle(command);
  }
  void write(VersionNumber version, std::optional<VersionNumber> older = {}) {
    seal(version, older);
    const auto sealed = last<VersionSealed>();
    ASSERT_TRUE(sealed);
    format::CommitRecord record = sealed->stored.record;
    record.level = Level::local;
    store_.handle(RecordVersion{record});
    records_[version] = last<VersionRecorded>()->stored.record;
  }
  format::Manifest read(VersionNumber version) {
    const auto bytes =
        tier()->get(format::manifest_name(format::version_folder("job", version), 0), 1 << 20);
    return format::decode_manifest(bytes.value()).value();
  }
  bool is_there(VersionNumber version) {
    return store::look_at(*tier(), "job", version).level != Level::none;
  }
  template <typename Wanted>
  std::optional<Wanted> last() const {
    const auto* wanted = events_.empty() ? nullptr : std::get_if<Wanted>(&events_.back());
    return wanted == nullptr ? std::nullopt : std::optional(*wanted);
  }
  Status copy(VersionNumber version, tier::Tier& to) {
    const auto from = tier();
    BACKSTAY_ASSIGN(const bool there, store::make_way(to, records_.at(version)));
    if (there) return {};
    store::VersionCopy copy(*from, to, system_clock(), {records_.at(version), Level::durable, 0});
    while (!copy.done()) {
      const Status status = copy.step();
      if (!status.ok()) (void)copy.remove_rest().ok();
      BACKSTAY_TRY(status);
    }
    return {};
  }

  io::MemoryFileSystem disk_;
  std::deque<Event> events_;
  std::map<VersionNumber, format::CommitRecord> records_;
  StoreWorker store_{"job", [this]() -> Result<std::unique_ptr<tier::Tier>> { return tier(); },
                     [this](Event event) { events_.push_back(std::move(event)); }, nullptr};
};

TEST_F(StoreNeeds, AVersionSaysWhatItNeeds) {
  write(1);
  seal(2, 1);
  const auto sealed = last<VersionSealed>();
  ASSERT_TRUE(sealed);
  EXPECT_THAT(store::needed_files(*sealed->manifest), ElementsAre(FileOf{1, run, 0}));
  EXPECT_THAT(sealed->stored.record.needs, ElementsAre(format::Need{1, run}));
  EXPECT_EQ(sealed->manifest->segment_bytes, 4096u + chunk_bytes);
  EXPECT_THAT(read(2).needs, ElementsAre(format::Need{1, run}));
}

// The version in whose segment the bytes lie, in one step.
TEST_F(StoreNeeds, AScanFindsWhatVersionsNeed) {
  write(1);
  write(2, 1);
  write(3, 2);
  store_.handle(ScanJob{});
  const auto scanned = last<Scanned>();
  ASSERT_TRUE(scanned && scanned->versions.ok() && scanned->versions->size() == 3);
  EXPECT_THAT(scanned->versions->at(0).needs, IsEmpty());
  EXPECT_THAT(scanned->versions->at(2).needs, ElementsAre(format::Need{1, run}));
}

TEST_F(StoreNeeds, WithoutWhatItNeedsAVersionIsNotWritten) {
  write(1);
  ASSERT_TRUE(tier()->remove(format::segment_name(format::version_folder("job", 1), 0)).ok());
  seal(2, 1);
  const auto failed = last<VersionFailed>();
  ASSERT_TRUE(failed);
  EXPECT_THAT(failed->error.message(), HasSubstr("needs version 1"));
  EXPECT_THAT(tier()->list(format::version_folder("job", 2)).value(), IsEmpty());
}

TEST_F(StoreNeeds, ChunksOfOlderVersionsAreRead) {
  write(1);
  write(2, 1);
  store_.handle(LoadManifest{records_.at(2), 0});
  const auto loaded = last<ManifestLoaded>();
  ASSERT_TRUE(loaded && loaded->manifest.ok());
  const format::Manifest& manifest = *loaded->manifest;
  AlignedMemory memory(chunk_bytes);
  for (const format::ChunkEntry& chunk : manifest.chunks) {
    const auto older =
        chunk.here() ? std::nullopt : std::optional(store::file_with(manifest, chunk));
    store_.handle(ReadChunk{2, 0, 0, memory.span(), chunk, 1, older});
    while (store_.busy()) store_.reap(true);
    ASSERT_TRUE(last<ChunkRead>() && last<ChunkRead>()->status.ok());
    EXPECT_EQ(checksum(memory.span()), chunk.checksum);
  }
  // Another segment in its place is not taken for it.
  const auto chunk = manifest.chunks.at(1);
  store_.handle(ReadChunk{2, 0, 0, memory.span(), chunk, 1, FileOf{1, run + 1, 0}});
  ASSERT_TRUE(last<ChunkRead>());
  EXPECT_EQ(last<ChunkRead>()->status.error().code(), Code::corrupt);
  store_.handle(DoneReading{});
}

TEST_F(StoreNeeds, WhatAVersionThatIsReadNeedsStays) {
  write(1);
  write(2, 1);
  write(3);
  store_.handle(LoadManifest{records_.at(2), 0});
  store_.handle(RemoveVersions{{3, 2, 1}});
  EXPECT_THAT(last<Removed>()->versions, ElementsAre(3));
  EXPECT_THAT(last<Removed>()->stayed, ElementsAre(2, 1));
  store_.handle(RemoveVersions{{1}});
  EXPECT_THAT(last<Removed>()->stayed, ElementsAre(1));
  store_.handle(DoneReading{});
  store_.handle(RemoveVersions{{2, 1}});
  EXPECT_THAT(last<Removed>()->versions, ElementsAre(2, 1));
}

// What is to be removed was chosen before the main loop heard of it.
TEST_F(StoreNeeds, WhatAVersionNeedsThatWasJustSealedStays) {
  write(1);
  seal(2, 1);
  const format::CommitRecord record = last<VersionSealed>()->stored.record;
  store_.handle(RemoveVersions{{1}});
  EXPECT_THAT(last<Removed>()->stayed, ElementsAre(1));
  store_.handle(RecordVersion{record});
  store_.handle(RemoveVersions{{2, 1}});
  EXPECT_THAT(last<Removed>()->versions, ElementsAre(2, 1));
}

TEST_F(StoreNeeds, WhatAVersionNeedsIsCopiedFirst) {
  write(1);
  write(2, 1);
  io::MemoryFileSystem other;
  const auto to = tier_on(other);
  const Status alone = copy(2, *to);
  ASSERT_FALSE(alone.ok());
  EXPECT_EQ(alone.error().code(), Code::state);
  EXPECT_THAT(alone.error().message(), HasSubstr("copy version 1 first"));
  EXPECT_EQ(store::look_at(*to, "job", 2).level, Level::none);
  ASSERT_TRUE(copy(1, *to).ok());
  ASSERT_TRUE(copy(2, *to).ok());
  const StoredVersion there = store::look_at(*to, "job", 2);
  EXPECT_EQ(there.level, Level::durable);
  EXPECT_EQ(there.record.needs, records_.at(2).needs);
  for (const VersionNumber version : {1u, 2u}) {
    const std::string folder = format::version_folder("job", version);
    for (const std::string& name :
         {format::manifest_name(folder, 0), format::segment_name(folder, 0)}) {
      Buffer ours = tier()->get(name, 1 << 20).value(), theirs = to->get(name, 1 << 20).value();
      const std::ptrdiff_t header = name == format::segment_name(folder, 0) ? 4096 : 0;
      EXPECT_TRUE(std::equal(ours.begin() + header, ours.end(), theirs.begin() + header)) << name;
    }
  }
}

}  // namespace
}  // namespace backstay::agent::testing
