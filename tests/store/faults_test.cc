// The rule of the fault tests over src/store itself: what was reported as written comes back,
// exact; what was not comes back exact or not at all; never wrong bytes. It holds for a version
// that is written, for a copy and for a replica alike.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/checksum.h"
#include "format/names.h"
#include "format/segment.h"
#include "io/faulty.h"
#include "io/memory.h"
#include "store/catalog.h"
#include "store/incoming_replica.h"
#include "store/part_reader.h"
#include "store/part_writer.h"
#include "store/records.h"
#include "store/version_copy.h"
#include "support/seed.h"
#include "tier/dir.h"

namespace backstay::store {
namespace {

using io::Fault;
constexpr std::uint32_t ranks = 2, chunk_bytes = 8192;

// Of each rank one chunk and a part of one.
Buffer content(VersionNumber version, Rank rank) {
  Buffer bytes(chunk_bytes + 700 + 100 * rank + version);
  test::Random random(100 * version + rank);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.between(0, 255));
  return bytes;
}

std::unique_ptr<tier::Tier> tier_on(io::FileSystem& files,
                                    const std::shared_ptr<io::Faults>& faults = {}) {
  const auto make_ring = [faults]() -> Result<std::unique_ptr<io::Ring>> {
    auto ring = io::make_memory_ring({.seed = 1});
    if (faults) ring = io::make_faulty_ring(std::move(ring), faults);
    return ring;
  };
  return tier::open_dir_tier(files, make_ring, {.root = "/versions"}).value();
}

// For a run of several nodes it writes the first one's part, without a record.
Status write(tier::Tier& tier, VersionNumber version, std::uint32_t nodes = 1) {
  PartWriter writer(tier, "job", {version, /*run=*/7, 0, nodes, ranks, chunk_bytes});
  BACKSTAY_TRY(writer.open(0));
  PartEnd end{version, 42, {}};
  std::vector<AlignedMemory> slots;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Buffer bytes = content(version, rank);
    for (std::size_t at = 0; at < bytes.size(); at += chunk_bytes) {
      const auto piece =
          Bytes(bytes).subspan(at).first(std::min<std::size_t>(chunk_bytes, bytes.size() - at));
      const auto memory = slots.emplace_back(chunk_bytes).span();
      std::ranges::copy(piece, memory.begin());
      writer.write({rank, at, static_cast<std::uint32_t>(piece.size()), checksum(piece), memory},
                   0);
      writer.reap(/*wait=*/false);
    }
    end.object_bytes.emplace_back(rank, bytes.size());
  }
  while (writer.in_flight() > 0) writer.reap(/*wait=*/true);
  if (writer.error()) return *writer.error();
  BACKSTAY_ASSIGN(FinishedPart part, writer.finish(end));
  return nodes == 1 ? put_record(tier, part.record) : Status();
}

Status copy(tier::Tier& from, tier::Tier& to, VersionNumber version) {
  const format::CommitRecord record = look_at(from, "job", version).record;
  VersionCopy copy(from, to, system_clock(), {record, Level::local});
  Status status;
  while (status.ok() && !copy.done()) status = copy.step();
  if (!status.ok()) (void)copy.remove_rest().ok();
  return status;
}

// As a keeper has it from the owner, piece by piece.
Status keep(tier::Tier& from, tier::Tier& to, VersionNumber version) {
  const FileOf file{version, 7, 0};
  const FileNames names = names_of("job", file);
  IncomingReplica replica(to, "job", file, from.get(names.manifest, 1 << 20).value());
  const auto segment = from.open(names.data).value();
  const auto record = look_at(from, "job", version).record;
  const auto arrive = [&]() -> Status {
    const std::uint64_t bytes = read_manifest(from, "job", record, 0).value().segment_bytes;
    BACKSTAY_ASSIGN(const auto pieces, replica.open(bytes, 2 * chunk_bytes));
    std::vector<AlignedMemory> slots;
    Status status;
    for (const Piece& piece : pieces) {
      const auto memory = slots.emplace_back(piece.bytes).span();
      segment->read(piece.offset, memory, 0);
      EXPECT_TRUE(segment->reap(true).front().status.ok());
      replica.write(piece.offset, memory, [&](const Status& written) {
        if (!written.ok()) status = written;
      });
    }
    while (replica.in_flight() > 0) replica.reap(true);
    BACKSTAY_TRY(status);
    return replica.seal(record);
  };
  const Status status = arrive();
  if (!status.ok()) (void)replica.remove_rest().ok();
  return status;
}

// How a version comes onto a tier: by its ranks, or from another tier.
struct Way {
  const char* name;
  Status (*make)(tier::Tier& from, tier::Tier& to, VersionNumber version);
};
constexpr Way ways[] = {{"written", [](tier::Tier&, tier::Tier& to,
                                       VersionNumber version) { return write(to, version); }},
                        {"copied", copy},
                        {"kept", keep}};

// Every object of the version; an error where it is not there or not right.
Status read(const std::vector<tier::Tier*>& tiers, VersionNumber version) {
  const StoredVersion stored = look_at(*tiers.front(), "job", version);
  if (!stored.good()) return Error(Code::not_found, "no version");
  BACKSTAY_ASSIGN(const auto manifest, read_manifest(*tiers.front(), "job", stored.record, 0));
  PartReader reader(tiers, manifest);
  BACKSTAY_TRY(reader.open());
  for (Rank rank = 0; rank < ranks; ++rank) {
    const format::ObjectEntry* object = manifest.find(rank);
    if (object == nullptr) return Error(Code::corrupt, "no object");
    Buffer bytes;
    for (const format::ChunkEntry& chunk : manifest.chunks_of(*object)) {
      AlignedMemory memory(chunk_bytes);
      BACKSTAY_TRY(reader.read(chunk, memory.span()));
      const auto piece = memory.span().first(chunk.length);
      bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    EXPECT_EQ(bytes, content(version, rank)) << "wrong bytes of version " << version;
  }
  return {};
}

void put(io::FileSystem& disk, const std::string& path, const Buffer& bytes) {
  ASSERT_TRUE(disk.open(path, io::Open::create).value()->write_at(0, bytes).ok());
}

class StoreFaults : public ::testing::TestWithParam<std::tuple<Way, Fault>> {};

TEST_P(StoreFaults, EveryCallInTurnAndThenThePower) {
  const auto [way, fault] = GetParam();
  SCOPED_TRACE(way.name);
  const bool harmless = fault == Fault::interrupted || fault == Fault::short_transfer;
  io::MemoryFileSystem source;
  const auto from = tier_on(source);
  for (const VersionNumber version : {1, 2}) ASSERT_TRUE(write(*from, version).ok());
  std::uint64_t calls = 1;
  for (std::uint64_t at = 0; at <= calls && !HasFailure(); ++at) {
    io::MemoryFileSystem disk;
    const auto faults =
        std::make_shared<io::Faults>(io::FaultPlan{at == 0 ? Fault::none : fault, at});
    const auto faulty = io::make_faulty_filesystem(disk, faults);
    Status written[2];
    {
      const auto tier = tier_on(*faulty, faults);
      for (const VersionNumber version : {1, 2}) {
        written[version - 1] = way.make(*from, *tier, version);
      }
    }
    SCOPED_TRACE(fmt::format("call {}: {}", at, faults->chosen()));
    if (at == 0) calls = faults->calls();
    if (at == 0 || harmless) {
      EXPECT_TRUE(written[0].ok() && written[1].ok());
    }
    disk.crash(at);
    const auto tier = tier_on(disk);
    for (const VersionNumber version : {1, 2}) {
      const Status back = read({tier.get()}, version);
      if (written[version - 1].ok()) {
        EXPECT_TRUE(back.ok()) << back.error().to_string();
      }
    }
  }
  EXPECT_GT(calls, 20u);
}

INSTANTIATE_TEST_SUITE_P(All, StoreFaults,
                         ::testing::Combine(::testing::ValuesIn(ways),
                                            ::testing::Values(Fault::io, Fault::no_space,
                                                              Fault::permission, Fault::interrupted,
                                                              Fault::short_transfer, Fault::torn,
                                                              Fault::stop, Fault::stop_midway)));

// Each call of a scan fails in turn, alone or with the next one. The scan removes nothing but
// garbage, and takes no version as good that was set aside.
TEST(StoreFaults, AScanThatCannotReadRemovesNothingAndTrustsNothing) {
  io::MemoryFileSystem disk;
  ASSERT_TRUE(write(*tier_on(disk), 1).ok());
  ASSERT_TRUE(set_aside(*tier_on(disk), "job", 1, "bad" + std::string(9000, '.')).ok());
  ASSERT_TRUE(write(*tier_on(disk), 2, /*nodes=*/2).ok());
  bool unreadable = false;
  for (const Fault fault : {Fault::io, Fault::permission, Fault::flip}) {
    std::uint64_t calls = 1;
    for (std::uint64_t at = 0; at <= 2 * calls && !HasFailure(); ++at) {
      const auto plan = io::FaultPlan{at == 0 ? Fault::none : fault, (at + 1) / 2};
      const auto faults = std::make_shared<io::Faults>(plan);
      const auto faulty = io::make_faulty_filesystem(disk, faults);
      const auto next = std::make_shared<io::Faults>(at % 2 == 0 ? plan : io::FaultPlan{});
      const auto twice = io::make_faulty_filesystem(*faulty, next);
      const auto scanned = scan_for_agent(*tier_on(*twice), "job", /*clean=*/true);
      SCOPED_TRACE(fmt::format("{}: {}", at, faults->chosen()));
      if (at == 0) calls = faults->calls();
      EXPECT_TRUE(at != 0 || scanned.ok());
      if (scanned.ok()) {
        ASSERT_EQ(scanned->size(), 2u);
        EXPECT_FALSE(scanned->front().good());
        EXPECT_TRUE(scanned->back().in_doubt || scanned->back().unreadable);
        unreadable |= scanned->back().unreadable.has_value();
      }
      auto second = look_at(*tier_on(disk), "job", 2);
      EXPECT_TRUE(find_in_doubt(*tier_on(disk), "job", second));
    }
  }
  EXPECT_TRUE(unreadable);
}

TEST(StoreDamage, EveryByteFlippedIsSeenOrHarmless) {
  io::MemoryFileSystem disk;
  const auto tier = tier_on(disk);
  ASSERT_TRUE(write(*tier, 1).ok());
  const std::string folder = "/versions/" + format::version_folder("job", 1);
  std::size_t seen = 0, flipped = 0;
  const auto entries = disk.list(folder).value();
  for (const io::Entry& entry : entries) {
    const std::string path = folder + "/" + entry.name;
    const Buffer good = io::read_file(disk, path, 1 << 20).value();
    for (std::size_t at = 0; at < good.size() && !HasFailure(); ++at, ++flipped) {
      Buffer bad = good;
      bad[at] ^= std::byte{0x10};
      put(disk, path, bad);
      seen += read({tier.get()}, 1).ok() ? 0 : 1;  // which holds the bytes against the right ones
    }
    put(disk, path, good);
  }
  EXPECT_GT(flipped, 20'000u);
  EXPECT_GT(seen, ranks * chunk_bytes);
  EXPECT_TRUE(read({tier.get()}, 1).ok());
}

TEST(StoreDamage, NoWrongByteOfTheSourceIsTakenAlong) {
  io::MemoryFileSystem source;
  const auto from = tier_on(source);
  ASSERT_TRUE(write(*from, 1).ok());
  const std::string path = "/versions/" + format::segment_name(format::version_folder("job", 1), 0);
  const Buffer good = io::read_file(source, path, 1 << 20).value();
  for (std::size_t at = format::segment_header_bytes; at < good.size() && !HasFailure(); at += 97) {
    Buffer bad = good;
    bad[at] ^= std::byte{0x10};
    put(source, path, bad);
    for (const Way& way : {ways[1], ways[2]}) {
      io::MemoryFileSystem disk;
      const auto to = tier_on(disk);
      const bool made = way.make(*from, *to, 1).ok();
      EXPECT_EQ(made, read({to.get()}, 1).ok()) << way.name << " at " << at;
    }
  }
}

// `verify` counts on it: what was started is in flight until it is reaped.
TEST(StoreDamage, AChunkWhoseSegmentIsMissingIsToldAsOthersAre) {
  io::MemoryFileSystem disk;
  const auto tier = tier_on(disk);
  ASSERT_TRUE(write(*tier, 1).ok());
  const StoredVersion stored = look_at(*tier, "job", 1);
  format::Manifest manifest = read_manifest(*tier, "job", stored.record, 0).value();
  manifest.needs = {{9, 7}};
  manifest.chunks.front().need = 1;
  PartReader reader({tier.get()}, manifest);
  ASSERT_TRUE(reader.open().ok());
  AlignedMemory memory(chunk_bytes);
  reader.start(manifest.chunks.front(), memory.span(), 5);
  EXPECT_EQ(reader.in_flight(), 1u);
  const auto done = reader.reap(/*wait=*/true);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done.front().status.error().code(), Code::corrupt);
  EXPECT_EQ(reader.in_flight(), 0u);
}

TEST(StoreDamage, AnotherTierMakesUpForOneThatIsWrong) {
  io::MemoryFileSystem disk, other;
  const auto tier = tier_on(disk), second = tier_on(other);
  ASSERT_TRUE(write(*tier, 1).ok());
  ASSERT_TRUE(write(*second, 1).ok());
  const std::string path = "/versions/" + format::segment_name(format::version_folder("job", 1), 0);
  Buffer bad = io::read_file(disk, path, 1 << 20).value();
  bad[5000] ^= std::byte{0x10};
  put(disk, path, bad);
  EXPECT_FALSE(read({tier.get()}, 1).ok());
  EXPECT_TRUE(read({tier.get(), second.get()}, 1).ok());
  ASSERT_TRUE(disk.remove(path).ok());
  EXPECT_TRUE(read({tier.get(), second.get()}, 1).ok());
}

}  // namespace
}  // namespace backstay::store
