// The peer file thread without its thread (once with it): what it finds, reads and writes on behalf
// of others, whatever fails.
#include "agent/disk/peer_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/agents.h"
#include "agent/disk/disk_threads.h"
#include "store/catalog.h"
#include "support/samples.h"

namespace backstay::agent {
namespace {

using namespace testing;
using ::testing::ElementsAre;

constexpr VersionNumber version = 3;
constexpr std::uint64_t losses = 3;

// A peer file thread on a disk of its own, played until nothing is left to do.
class Desk {
 public:
  explicit Desk(io::FileSystem& disk)
      : worker(
            "job", [&]() -> Result<std::unique_ptr<tier::Tier>> { return tier_on(disk); },
            [this](PeerFileEvent event) { events.push_back(std::move(event)); }, clock) {}
  template <typename Answer, typename Command>
  Answer ask(Command command) {
    std::optional<Answer> answer;
    command.done = [&](Answer given) { answer.emplace(std::move(given)); };
    worker.handle(std::move(command));
    while (worker.busy()) worker.step(true);
    for (; !events.empty(); events.pop_front()) events.front()();
    EXPECT_TRUE(answer.has_value());
    return std::move(*answer);
  }
  ManualClock clock;
  std::deque<PeerFileEvent> events;
  PeerFileWorker worker;
};

// A version of node 1 on the first disk, one of node 0 on the second, which is to keep a copy.
struct World {
  World() : network(2, {.seed = 1}) {
    file = write_file(network, 1, version);
    write_file(network, 0, version, 2);
    segment = bytes_of(network, 1, segment_of(file));
    manifest = bytes_of(network, 1, manifest_of(file));
    own_segment = bytes_of(network, 0, segment_of({version, run, 0}));
  }
  io::MemoryFileSystem& disk() { return *network.disks[0]; }
  bool has_it() { return has_copy(network, 0, file, segment, manifest); }
  bool own_is_whole() {
    return bytes_of(network, 0, segment_of({version, run, 0})) == own_segment &&
           store::look_at(*tier_on(disk()), "job", version).good();
  }
  PlayedNetwork network;
  FileOf file;
  Buffer segment, manifest, own_segment;
};

// The steps of a keeper. The first error ends it.
Status copy(Desk& desk, const FileOf& file, const Buffer& segment, const Buffer& manifest,
            std::optional<format::CommitRecord> record = std::nullopt) {
  BACKSTAY_ASSIGN(const auto pieces, desk.ask<Result<std::vector<store::Piece>>>(OpenCopy{
                                         file, manifest, segment.size(), buffer_bytes, nullptr}));
  AlignedMemory memory(buffer_bytes);
  for (const store::Piece& piece : pieces) {
    std::memcpy(memory.span().data(), segment.data() + piece.offset, piece.bytes);
    const Status written =
        desk.ask<Status>(WritePiece{file, piece.offset, memory.span().first(piece.bytes), nullptr});
    if (written.ok()) continue;
    desk.worker.handle(AbandonCopy{file});
    return written;
  }
  const auto held = desk.ask<Result<HeldFile>>(SealCopy{file, std::move(record), nullptr});
  return held.ok() ? Status() : Status(held.error());
}

format::CommitRecord record_of(const FileOf& file) {
  return {"job", Level::local, file.version, file.run, 2, 2, 1, 1, 42, 43};
}

TEST(PeerFileThread, CutsSegmentsBetweenChunks) {
  SCOPED_TRACE(test::replay());
  test::Random random;
  for (int i = 0; i < 300; ++i) {
    const format::Manifest manifest = test::random_manifest(random);
    const std::uint64_t most = 4096 * random.between(5, 20);
    std::uint64_t end = 0;
    for (const store::Piece& piece : store::cut(manifest, most)) {
      ASSERT_EQ(piece.offset, end);
      ASSERT_GT(piece.bytes, 0u);
      ASSERT_LE(piece.bytes, most);
      ASSERT_EQ(piece.bytes % 4096, 0u);
      end = piece.offset + piece.bytes;
      for (const format::ChunkEntry& chunk : manifest.chunks) {
        const std::uint64_t last = chunk.segment_offset + format::slot_bytes(chunk.length);
        ASSERT_FALSE(chunk.segment_offset < end && end < last) << "a chunk in two pieces";
      }
    }
    ASSERT_EQ(end, manifest.segment_bytes);
  }
}

TEST(PeerFileThread, ListsWholeFilesOnly) {
  World world;
  Desk desk(world.disk());
  ASSERT_TRUE(copy(desk, world.file, world.segment, world.manifest).ok());
  const FileOf without_segment = write_file(world.network, 0, version + 1);
  ASSERT_TRUE(world.disk().remove(path_of(segment_of(without_segment))).ok());
  const FileOf damaged = write_file(world.network, 0, version + 2);
  Buffer bytes = bytes_of(world.network, 0, manifest_of(damaged));
  bytes.at(200) ^= std::byte{1};
  ASSERT_TRUE(io::publish_file(world.disk(), path_of(manifest_of(damaged)), bytes).ok());
  write_file(world.network, 0, version + 3);
  ASSERT_TRUE(store::set_aside(*tier_on(world.disk()), "job", version + 3, "a test").ok());

  const auto found = desk.ask<Result<std::vector<HeldFile>>>(ListFiles{});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->size(), 2u);
  EXPECT_EQ((*found)[0].file, (FileOf{version, run, 0}));
  EXPECT_EQ((*found)[1].file, world.file);
  EXPECT_THAT((*found)[1].ranks, ElementsAre(1u));
  EXPECT_EQ((*found)[1].nodes, 2u);
  EXPECT_EQ((*found)[1].segment_bytes, world.segment.size());
  ASSERT_TRUE((*found)[1].record.has_value());
  EXPECT_EQ((*found)[1].record->level, Level::local);
}

TEST(PeerFileThread, ReadsWhatIsThereAndNothingElse) {
  World world;
  Desk desk(*world.network.disks[1]);
  AlignedMemory memory(buffer_bytes);
  const auto read = [&](const FileOf& file, std::uint64_t offset) {
    return desk.ask<Status>(ReadPiece{file, offset, memory.span().first(8192), nullptr});
  };
  ASSERT_TRUE(read(world.file, 4096).ok());
  EXPECT_TRUE(std::equal(memory.span().begin(), memory.span().begin() + 8192,
                         world.segment.begin() + 4096));
  EXPECT_EQ(*desk.ask<Result<Buffer>>(ReadFileManifest{world.file, nullptr}), world.manifest);
  EXPECT_EQ(read(world.file, world.segment.size()).error().code(), Code::corrupt);
  for (const FileOf& other :
       {FileOf{version, run + 1, 1}, FileOf{version, run, 0}, FileOf{version + 1, run, 1}}) {
    EXPECT_EQ(read(other, 4096).error().code(), Code::not_found);
    EXPECT_EQ(desk.ask<Result<Buffer>>(ReadFileManifest{other, nullptr}).error().code(),
              Code::not_found);
  }
}

// An open file keeps its room on the disk.
TEST(PeerFileThread, ClosesWhatNobodyReads) {
  World world;
  Desk desk(*world.network.disks[1]);
  AlignedMemory memory(4096);
  ASSERT_TRUE(desk.ask<Status>(ReadPiece{world.file, 0, memory.span(), nullptr}).ok());
  ASSERT_TRUE(tier_on(*world.network.disks[1])->remove("job").ok());
  desk.worker.close_idle();
  EXPECT_GT(world.network.disks[1]->used_bytes(), 0u) << "it may be read again at once";
  desk.clock.advance(desk.worker.closes_at_ns() - desk.clock.monotonic_ns());
  desk.worker.close_idle();
  EXPECT_EQ(world.network.disks[1]->used_bytes(), 0u);
  EXPECT_EQ(desk.worker.closes_at_ns(), no_deadline);
}

TEST(PeerFileThread, ACopyIsTheSameFileInTheSameFolder) {
  World world;
  Desk desk(world.disk());
  ASSERT_TRUE(copy(desk, world.file, world.segment, world.manifest).ok());
  EXPECT_TRUE(world.has_it());
  EXPECT_TRUE(world.own_is_whole());
  const auto again = desk.ask<Result<std::vector<store::Piece>>>(
      OpenCopy{world.file, world.manifest, world.segment.size(), buffer_bytes, nullptr});
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->empty()) << "it is there already";
}

TEST(PeerFileThread, PutsTheRecordOnlyWhereNoneIs) {
  World world;
  const auto own = store::look_at(*tier_on(world.disk()), "job", version).record;
  Desk desk(world.disk());
  ASSERT_TRUE(copy(desk, world.file, world.segment, world.manifest, record_of(world.file)).ok());
  EXPECT_EQ(store::look_at(*tier_on(world.disk()), "job", version).record.manifests_sum,
            own.manifests_sum);
  io::MemoryFileSystem empty;
  Desk spare(empty);
  ASSERT_TRUE(copy(spare, world.file, world.segment, world.manifest, record_of(world.file)).ok());
  EXPECT_TRUE(store::look_at(*tier_on(empty), "job", version).good());
}

TEST(PeerFileThread, NeverTouchesAnotherRunsVersion) {
  World world;
  FileOf other = world.file;
  other.run = run + 1;
  auto manifest = format::decode_manifest(world.manifest).value();
  manifest.run = other.run;
  Desk desk(world.disk());
  const auto opened = desk.ask<Result<std::vector<store::Piece>>>(
      OpenCopy{other, format::encode(manifest), world.segment.size(), buffer_bytes, nullptr});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Code::busy);
  EXPECT_TRUE(world.own_is_whole());
}

TEST(PeerFileThread, RefusesAManifestThatDoesNotFit) {
  World world;
  Desk desk(world.disk());
  const auto open = [&](const FileOf& file, Buffer manifest, std::uint64_t bytes,
                        std::uint64_t most) {
    return desk
        .ask<Result<std::vector<store::Piece>>>(
            OpenCopy{file, std::move(manifest), bytes, most, nullptr})
        .error()
        .code();
  };
  Buffer damaged = world.manifest;
  damaged.at(100) ^= std::byte{4};
  EXPECT_EQ(open(world.file, damaged, world.segment.size(), buffer_bytes), Code::corrupt);
  EXPECT_EQ(open({version, run, 0}, world.manifest, world.segment.size(), buffer_bytes),
            Code::corrupt);
  EXPECT_EQ(open(world.file, world.manifest, 4096, buffer_bytes), Code::corrupt);
  EXPECT_EQ(open(world.file, world.manifest, world.segment.size(), 8192), Code::config);
  EXPECT_FALSE(world.has_it());
}

TEST(PeerFileThread, NoWrongByteIsKept) {
  World world;
  for (std::uint64_t at = 0; at < world.segment.size(); at += 509) {
    Buffer wrong = world.segment;
    wrong[at] ^= std::byte{1};
    io::MemoryFileSystem disk;
    Desk desk(disk);
    const Status status = copy(desk, world.file, wrong, world.manifest);
    const auto manifest = format::decode_manifest(world.manifest).value();
    const bool counts =
        at < 4096 || std::ranges::any_of(manifest.chunks, [at](const format::ChunkEntry& chunk) {
          return at >= chunk.segment_offset && at < chunk.segment_offset + chunk.length;
        });
    ASSERT_EQ(status.ok(), !counts) << at;
    if (!counts) continue;
    EXPECT_TRUE(store::is_damage_or_gone(status.error().code())) << at;
    EXPECT_EQ(disk.used_bytes(), 0u) << "its rest was removed";
  }
}

TEST(PeerFileThread, EveryCallFailsOnce) {
  for (const io::Fault fault :
       {io::Fault::io, io::Fault::no_space, io::Fault::permission, io::Fault::torn}) {
    for (std::uint64_t at = 1;; ++at) {
      World world;
      auto faults = std::make_shared<io::Faults>(io::FaultPlan{fault, at});
      const auto faulty = io::make_faulty_filesystem(world.disk(), faults);
      Desk desk(*faulty);
      const Status status =
          copy(desk, world.file, world.segment, world.manifest, record_of(world.file));
      if (faults->chosen().empty()) break;
      SCOPED_TRACE(fmt::format("call {}: {}", at, faults->chosen()));
      EXPECT_TRUE(!status.ok() || world.has_it());
      world.has_it();
      EXPECT_TRUE(world.own_is_whole());
      Desk after(world.disk());
      EXPECT_TRUE(copy(after, world.file, world.segment, world.manifest).ok());
      EXPECT_TRUE(world.has_it());
      if (HasFailure()) return;
    }
  }
}

TEST(PeerFileThread, TheMachineStopsAtEveryCall) {
  for (const io::Fault fault : {io::Fault::stop, io::Fault::stop_midway}) {
    for (std::uint64_t at = 1, over = 0; over == 0; ++at) {
      for (std::uint64_t loss = 1; loss <= losses; ++loss) {
        World world;
        auto faults = std::make_shared<io::Faults>(io::FaultPlan{fault, at});
        const auto faulty = io::make_faulty_filesystem(world.disk(), faults);
        bool told = false;
        {
          Desk desk(*faulty);
          told = copy(desk, world.file, world.segment, world.manifest).ok();
        }
        SCOPED_TRACE(fmt::format("call {}: {} loss {}", at, faults->chosen(), loss));
        over = faults->chosen().empty() ? 1 : 0;
        world.disk().crash(loss);
        const bool there = world.has_it();
        EXPECT_TRUE(there || !told) << "it was told";
        EXPECT_TRUE(world.own_is_whole());
        Desk after(world.disk());
        EXPECT_TRUE(copy(after, world.file, world.segment, world.manifest).ok());
        EXPECT_TRUE(world.has_it());
        if (HasFailure()) return;
      }
    }
  }
}

// The agent dies at every call and another takes over: what it then calls kept survives the
// machine.
TEST(PeerFileThread, WhatADeadAgentLeftIsMadeSafe) {
  for (std::uint64_t at = 1, over = 0; over == 0; ++at) {
    for (std::uint64_t loss = 1; loss <= losses; ++loss) {
      World world;
      auto faults = std::make_shared<io::Faults>(io::FaultPlan{io::Fault::stop, at});
      const auto faulty = io::make_faulty_filesystem(world.disk(), faults);
      {
        Desk desk(*faulty);
        (void)copy(desk, world.file, world.segment, world.manifest).ok();
      }
      over = faults->chosen().empty() ? 1 : 0;
      Desk after(world.disk());
      ASSERT_TRUE(copy(after, world.file, world.segment, world.manifest).ok());
      world.disk().crash(loss);
      EXPECT_TRUE(world.has_it()) << "call " << at << ": " << faults->chosen() << " loss " << loss;
      if (HasFailure()) return;
    }
  }
}

TEST(PeerFileThread, AFolderThatIsRemovedMeanwhileIsNotMadeAnew) {
  World world;
  Desk desk(world.disk());
  const auto pieces = desk.ask<Result<std::vector<store::Piece>>>(
      OpenCopy{world.file, world.manifest, world.segment.size(), buffer_bytes, nullptr});
  AlignedMemory memory(buffer_bytes);
  for (const store::Piece& piece : *pieces) {
    std::memcpy(memory.span().data(), world.segment.data() + piece.offset, piece.bytes);
    ASSERT_TRUE(desk.ask<Status>(WritePiece{world.file, piece.offset,
                                            memory.span().first(piece.bytes), nullptr})
                    .ok());
  }
  ASSERT_TRUE(tier_on(world.disk())->remove("job").ok());
  const auto held =
      desk.ask<Result<HeldFile>>(SealCopy{world.file, record_of(world.file), nullptr});
  EXPECT_FALSE(held.ok());
  EXPECT_FALSE(world.has_it());
  EXPECT_EQ(store::look_at(*tier_on(world.disk()), "job", version).level, Level::none);
}

// It was there already when somebody wanted it kept: nothing is written but the record, and that
// only if it is there still.
TEST(PeerFileThread, ARecordIsNotPutWhereTheSegmentHasGone) {
  World world;
  Desk desk(world.disk());
  ASSERT_TRUE(copy(desk, world.file, world.segment, world.manifest).ok());
  const auto pieces = desk.ask<Result<std::vector<store::Piece>>>(
      OpenCopy{world.file, world.manifest, world.segment.size(), buffer_bytes, nullptr});
  ASSERT_TRUE(pieces.ok() && pieces->empty());
  ASSERT_TRUE(tier_on(world.disk())->remove("job").ok());
  const auto held =
      desk.ask<Result<HeldFile>>(SealCopy{world.file, record_of(world.file), nullptr});
  ASSERT_FALSE(held.ok());
  EXPECT_EQ(held.error().code(), Code::again);
  EXPECT_EQ(store::look_at(*tier_on(world.disk()), "job", version).level, Level::none);
}

// Nothing else is here of the version, or not any more.
TEST(PeerFileThread, NoEmptyFolderIsLeftWhereOneCameTooLate) {
  World world;
  io::MemoryFileSystem other;
  Desk desk(other);
  ASSERT_TRUE(
      desk.ask<Result<std::vector<store::Piece>>>(
              OpenCopy{world.file, world.manifest, world.segment.size(), buffer_bytes, nullptr})
          .ok());
  EXPECT_FALSE(tier_on(other)->list("job")->empty());
  desk.worker.handle(AbandonCopy{world.file});
  EXPECT_TRUE(tier_on(other)->list("job")->empty());
}

TEST(PeerFileThread, AFullDiskIsSaidBeforeAnythingIsCopied) {
  World world;
  io::MemoryFileSystem small({.capacity_bytes = 3 * buffer_bytes});
  Desk desk(small);
  const auto opened = desk.ask<Result<std::vector<store::Piece>>>(
      OpenCopy{world.file, world.manifest, world.segment.size(), buffer_bytes, nullptr});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), Code::no_space);
  EXPECT_EQ(small.used_bytes(), 0u);
  EXPECT_TRUE(tier_on(small)->list("job")->empty()) << "nor is an empty folder left";
}

TEST(PeerFileThread, WithItsThread) {
  World world;
  Mailbox<PeerFileEvent> events;
  PeerFileThread peer_files(
      "job", [&]() -> Result<std::unique_ptr<tier::Tier>> { return tier_on(world.disk()); },
      [&](PeerFileEvent event) { events.put(std::move(event)); });
  AlignedMemory memory(4096);
  std::size_t answers = 0;
  for (int i = 0; i < 20; ++i) {
    peer_files.post(ReadPiece{{version, run, 0}, 4096, memory.span(), [&](const Status& status) {
                                EXPECT_TRUE(status.ok());
                                ++answers;
                              }});
  }
  for (; answers < 20; (*events.take(/*wait=*/true))()) {
  }
  EXPECT_TRUE(
      std::equal(memory.span().begin(), memory.span().end(), world.own_segment.begin() + 4096));
}

}  // namespace
}  // namespace backstay::agent
