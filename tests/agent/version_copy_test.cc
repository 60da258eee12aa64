// Copying a version between two disks in memory: the copy is whole or it does not exist, whatever
// fails, wherever the machine stops, whichever byte is wrong.
#include "store/version_copy.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "agent/disk/store.h"
#include "base/checksum.h"
#include "format/names.h"
#include "format/segment.h"
#include "io/faulty.h"
#include "io/memory.h"
#include "refusing_tier.h"
#include "tier/dir.h"

namespace backstay::agent {
namespace {

constexpr std::uint32_t buffer_bytes = 16 * 1024;
constexpr std::uint32_t chunks = 7;  // more than are on their way at once
constexpr VersionNumber version = 3;
constexpr std::uint64_t losses = 3;
const std::string root = "/disk";
const std::string folder = root + "/" + format::version_folder("job", version);

// A disk, and the calls that go to it.
struct Disk {
  explicit Disk(io::MemoryOptions options = {}) : files(options) {}
  std::unique_ptr<tier::Tier> tier(io::FaultPlan plan = {}, unsigned depth = 4) {
    faults = std::make_shared<io::Faults>(plan);
    views.push_back(io::make_faulty_filesystem(files, faults));
    auto make_ring = [calls = faults, depth]() -> Result<std::unique_ptr<io::Ring>> {
      return io::make_faulty_ring(io::make_memory_ring({.depth = depth, .seed = 1}), calls);
    };
    return std::move(tier::open_dir_tier(*views.back(), make_ring, {.root = root}).value());
  }
  Buffer read(const std::string& name) {
    auto bytes = io::read_file(files, folder + "/" + name, 1 << 20);
    EXPECT_TRUE(bytes.ok()) << name;
    return bytes.ok() ? *bytes : Buffer{};
  }
  void flip(const std::string& name, std::uint64_t at) {
    auto file = files.open(folder + "/" + name, io::Open::reuse_direct);
    Buffer bytes = read(name);
    bytes.at(at) ^= std::byte{1};
    ASSERT_TRUE(io::publish_file(files, folder + "/" + name, bytes).ok());
  }
  io::MemoryFileSystem files;
  std::shared_ptr<io::Faults> faults;  // of the tier made last
  std::vector<std::unique_ptr<io::FileSystem>> views;
};

// A version of one rank as an agent writes it. `run` chooses its bytes too.
format::CommitRecord save(Disk& disk, RunId run = 7) {
  std::optional<format::CommitRecord> record;
  auto post_event = [&](const Event& event) {
    if (const auto* done = std::get_if<VersionSealed>(&event)) record = done->stored.record;
    if (const auto* done = std::get_if<VersionRecorded>(&event)) record = done->stored.record;
  };
  StoreWorker worker(
      "job", [&]() -> Result<std::unique_ptr<tier::Tier>> { return disk.tier(); }, post_event,
      nullptr);
  worker.handle(OpenVersion{{version, run, 0, 1, 1, buffer_bytes}, chunks * buffer_bytes});
  AlignedMemory memory(buffer_bytes);
  for (std::uint32_t chunk = 0; chunk < chunks; ++chunk) {
    const std::uint32_t length = chunk + 1 < chunks ? buffer_bytes : 5000;
    for (auto& byte : memory.span()) byte = static_cast<std::byte>(run * 31 + chunk);
    const auto payload = memory.span().first(length);
    worker.handle(WriteChunk{version, 0, chunk, memory.span().first(format::slot_bytes(length)),
                             length, std::uint64_t{chunk} * buffer_bytes, checksum(payload)});
    while (worker.busy()) worker.reap(true);
  }
  worker.handle(SealVersion{version, 42, {{0, (chunks - 1) * buffer_bytes + 5000}}});
  record->level = Level::local;
  worker.handle(RecordVersion{*record});
  EXPECT_NE(record->committed_ns, 0u);
  return *record;
}

Status copy(tier::Tier& from, tier::Tier& to, const format::CommitRecord& record,
            bool* damaged = nullptr) {
  BACKSTAY_ASSIGN(const bool there, store::make_way(to, record));
  if (there) return {};
  store::VersionCopy copy(from, to, system_clock(), {record, Level::durable, 0});
  while (!copy.done()) {
    const Status status = copy.step();
    if (damaged != nullptr) *damaged = copy.source_is_damaged();
    if (!status.ok()) (void)copy.remove_rest().ok();
    BACKSTAY_TRY(status);
  }
  EXPECT_EQ(copy.committed().level, Level::durable);
  return {};
}

StoredVersion look(Disk& disk) { return store::look_at(*disk.tier(), "job", version); }

// A version that exists there has every byte of ours. True if it exists.
bool is_whole_or_not_there(Disk& from, Disk& to) {
  if (look(to).level == Level::none) return false;
  EXPECT_EQ(look(to).level, Level::durable);
  EXPECT_EQ(to.read("node-0000000.manifest"), from.read("node-0000000.manifest"));
  const Buffer ours = from.read("node-0000000.segment");
  const Buffer theirs = to.read("node-0000000.segment");
  EXPECT_GE(theirs.size(), ours.size());
  EXPECT_TRUE(std::equal(ours.begin() + 4096, ours.end(), theirs.begin() + 4096));
  return true;
}

TEST(VersionCopy, HasEveryByteAndItsOwnRecord) {
  for (const unsigned depth : {1u, 2u, 8u}) {
    Disk from, to;
    const auto record = save(from);
    ASSERT_TRUE(copy(*from.tier({}, depth), *to.tier({}, depth), record).ok()) << depth;
    ASSERT_TRUE(is_whole_or_not_there(from, to));
    const auto there = look(to).record;
    EXPECT_EQ(std::tuple(there.run, there.ranks, there.payload_bytes, there.manifests_sum,
                         there.captured_ns),
              std::tuple(record.run, record.ranks, record.payload_bytes, record.manifests_sum,
                         record.captured_ns));
    EXPECT_TRUE(
        format::decode_segment_header(Bytes(to.read("node-0000000.segment")).first(4096)).ok());
  }
}

TEST(VersionCopy, OfWhatIsThereAlreadyWritesNothing) {
  Disk from, to;
  const auto record = save(from);
  ASSERT_TRUE(copy(*from.tier(), *to.tier(), record).ok());
  const std::uint64_t committed_ns = look(to).record.committed_ns;
  ASSERT_TRUE(copy(*from.tier(), *to.tier(), record).ok());
  EXPECT_EQ(look(to).record.committed_ns, committed_ns);
}

TEST(VersionCopy, ReplacesOneThatIsDamagedThere) {
  Disk from, to;
  const auto record = save(from);
  ASSERT_TRUE(copy(*from.tier(), *to.tier(), record).ok());
  to.flip("node-0000000.segment", 4096);
  ASSERT_TRUE(store::set_aside(*to.tier(), "job", version, "a test").ok());
  ASSERT_TRUE(copy(*from.tier(), *to.tier(), record).ok());
  EXPECT_TRUE(look(to).good());
  EXPECT_TRUE(is_whole_or_not_there(from, to));
}

TEST(VersionCopy, NeverOverwritesAnotherRuns) {
  Disk from, to, other;
  const auto record = save(from);
  ASSERT_TRUE(copy(*other.tier(), *to.tier(), save(other, 8)).ok());
  const Status refused = copy(*from.tier(), *to.tier(), record);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::busy);
  EXPECT_TRUE(is_whole_or_not_there(other, to));
}

// It may be good: the storage has a bad moment.
TEST(VersionCopy, NeverRemovesAVersionWhoseRecordCannotBeRead) {
  Disk from, to;
  const format::CommitRecord record = save(from);
  ASSERT_TRUE(copy(*from.tier(), *to.tier(), record).ok());
  const auto trouble = std::make_shared<testing::Warning>();
  trouble->ending = "commit.durable";
  trouble->failing_gets = 2;
  testing::RefusingTier moment(to.tier(), trouble);
  const auto there = store::make_way(moment, record);
  ASSERT_FALSE(there.ok());
  EXPECT_EQ(there.error().code(), Code::io);
  EXPECT_TRUE(store::make_way(moment, record).value()) << "it is still there";
}

TEST(VersionCopy, NeverTakesAWrongByteAlong) {
  const Buffer good = [] {
    Disk disk;
    save(disk);
    return disk.read("node-0000000.segment");
  }();
  for (std::uint64_t at = 4096; at < good.size(); at += 997) {
    Disk from, to;
    const auto record = save(from);
    from.flip("node-0000000.segment", at);
    bool damaged = false;
    const Status status = copy(*from.tier(), *to.tier(), record, &damaged);
    if (status.ok()) {  // in the padding of the last chunk, which is zeros in the copy
      EXPECT_GE(at, 4096 + (chunks - 1) * buffer_bytes + 5000);
      EXPECT_EQ(to.read("node-0000000.segment").at(at), std::byte{0});
      continue;
    }
    EXPECT_EQ(status.error().code(), Code::corrupt) << at;
    EXPECT_TRUE(damaged) << at;
    EXPECT_TRUE(to.tier()->list("job").value().empty()) << "its rest was removed";
  }
}

TEST(VersionCopy, ADamagedOrMissingFileIsTheSourcesFault) {
  for (const std::string name : {"node-0000000.manifest", "node-0000000.segment"}) {
    Disk from, to;
    const auto record = save(from);
    ASSERT_TRUE(from.files.remove(folder + "/" + name).ok());
    bool damaged = false;
    EXPECT_FALSE(copy(*from.tier(), *to.tier(), record, &damaged).ok());
    EXPECT_TRUE(damaged) << name;
  }
  Disk from, to;
  const auto record = save(from);
  from.flip("node-0000000.manifest", 200);
  bool damaged = false;
  EXPECT_FALSE(copy(*from.tier(), *to.tier(), record, &damaged).ok());
  EXPECT_TRUE(damaged);
}

// Trouble that passes is not noticed where only the reading of a chunk fails; nothing is ever
// called damaged for it.
TEST(VersionCopy, EveryCallOfTheSourceFailsOnce) {
  for (const io::Fault fault : {io::Fault::io, io::Fault::flip, io::Fault::torn}) {
    for (std::uint64_t at = 1;; ++at) {
      Disk from, to;
      const auto record = save(from);
      bool damaged = false;
      const auto source = from.tier({fault, at});
      const Status status = copy(*source, *to.tier(), record, &damaged);
      if (from.faults->chosen().empty()) break;
      EXPECT_FALSE(damaged) << from.faults->chosen();
      EXPECT_TRUE(status.ok() || status.error().code() == Code::io) << status.error().to_string();
      EXPECT_TRUE(!status.ok() || is_whole_or_not_there(from, to)) << from.faults->chosen();
      EXPECT_TRUE(copy(*from.tier(), *to.tier(), record).ok());
    }
  }
}

TEST(VersionCopy, EveryCallOfTheDestinationFailsOnce) {
  for (const io::Fault fault :
       {io::Fault::io, io::Fault::no_space, io::Fault::permission, io::Fault::torn}) {
    for (std::uint64_t at = 1;; ++at) {
      Disk from, to;
      const auto record = save(from);
      bool damaged = false;
      const auto destination = to.tier({fault, at});
      const Status status = copy(*from.tier(), *destination, record, &damaged);
      if (to.faults->chosen().empty()) break;
      const std::string where = fmt::format("call {}: {}", at, to.faults->chosen());
      EXPECT_FALSE(damaged) << where;
      EXPECT_EQ(is_whole_or_not_there(from, to), status.ok() || look(to).good()) << where;
      EXPECT_TRUE(copy(*from.tier(), *to.tier(), record).ok()) << where;
      EXPECT_TRUE(is_whole_or_not_there(from, to)) << where;
    }
  }
}

TEST(VersionCopy, TheMachineOfTheDestinationStopsAtEveryCall) {
  for (const io::Fault fault : {io::Fault::stop, io::Fault::stop_midway}) {
    for (std::uint64_t at = 1;; ++at) {
      for (std::uint64_t loss = 1; loss <= losses; ++loss) {
        Disk from, to;
        const auto record = save(from);
        const auto destination = to.tier({fault, at});
        const bool told = copy(*from.tier(), *destination, record).ok();
        const std::string where = fmt::format("call {}: {} loss {}", at, to.faults->chosen(), loss);
        if (to.faults->chosen().empty()) {
          ASSERT_GT(at, 20u);
          to.files.crash(loss);
          EXPECT_TRUE(is_whole_or_not_there(from, to)) << "it was told";
          if (loss == losses) at = UINT64_MAX;
          continue;
        }
        EXPECT_FALSE(told) << where;
        to.files.crash(loss);
        is_whole_or_not_there(from, to);
        EXPECT_TRUE(copy(*from.tier(), *to.tier(), record).ok()) << where;
        EXPECT_TRUE(is_whole_or_not_there(from, to)) << where;
        if (HasFailure()) return;
      }
      if (at == UINT64_MAX) break;
    }
  }
}

TEST(VersionCopy, FullDestination) {
  Disk from, to({.capacity_bytes = 3 * buffer_bytes});
  const auto record = save(from);
  const Status status = copy(*from.tier(), *to.tier(), record);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), Code::no_space);
  EXPECT_EQ(to.files.used_bytes(), 0u) << "its rest was removed";
}

TEST(VersionCopy, DestinationRemovedMeanwhile) {
  Disk from, to;
  const auto record = save(from);
  const auto source = from.tier(), destination = to.tier();
  ASSERT_FALSE(store::make_way(*destination, record).value());
  store::VersionCopy copy(*source, *destination, system_clock(), {record, Level::durable, 0});
  ASSERT_TRUE(copy.step().ok());
  ASSERT_TRUE(to.tier()->remove("job").ok());  // by somebody else
  Status status;
  while (status.ok() && !copy.done()) status = copy.step();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(copy.remove_rest().ok());
  EXPECT_EQ(look(to).level, Level::none);
}

TEST(VersionCopy, KeepsToItsRate) {
  Disk from, to;
  const auto record = save(from);
  const auto source = from.tier(), destination = to.tier();
  ManualClock clock;
  const std::uint64_t began_ns = clock.monotonic_ns();
  constexpr std::uint64_t rate = buffer_bytes * 10;  // a chunk each tenth of a second
  store::VersionCopy copy(*source, *destination, clock, {record, Level::durable, rate});
  while (!copy.done()) {
    ASSERT_TRUE(copy.step().ok());
    const std::uint64_t passed_ns = clock.monotonic_ns() - began_ns;
    EXPECT_LE(copy.bytes(), buffer_bytes + passed_ns * rate / 1'000'000'000);
    if (const std::uint64_t until = copy.rests_until_ns(); until != 0)
      clock.advance(until - clock.monotonic_ns());
  }
  EXPECT_EQ(copy.bytes(), record.payload_bytes);
  EXPECT_NEAR(1e-9 * static_cast<double>(clock.monotonic_ns() - began_ns), 0.1 * (chunks - 1),
              0.01);
}

}  // namespace
}  // namespace backstay::agent
