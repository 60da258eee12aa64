// Copies of files that need others: whoever has one has what it needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/protected_world.h"
#include "store/needed_files.h"

namespace backstay::agent::testing {
namespace {

using ::testing::HasSubstr;

class NeedsCopies : public ::testing::Test {
 protected:
  // A file of the same node whose chunks but for the last one are those of the older file.
  FileOf write_needing(VersionNumber version, const FileOf& older) {
    const auto manifest = format::decode_manifest(world.manifests.at(older)).value();
    std::optional<format::CommitRecord> record;
    StoreWorker worker(
        "job",
        [&]() -> Result<std::unique_ptr<tier::Tier>> {
          return tier_on(*world.network.disks[older.node]);
        },
        [&](const Event& event) {
          if (const auto* done = std::get_if<VersionSealed>(&event)) record = done->stored.record;
        },
        nullptr);
    const std::uint32_t nodes = world.network.members();
    worker.handle(OpenVersion{{version, run, older.node, nodes, nodes, buffer_bytes}});
    SealVersion seal{version, 42, {}, {{{older.version, older.run}}, {}}};
    std::uint64_t bytes = 0;
    for (format::ChunkEntry chunk : manifest.chunks) {
      chunk.need = 1;
      chunk.node = older.node;
      seal.older.chunks.push_back(chunk);
      bytes += chunk.length;
    }
    AlignedMemory memory(buffer_bytes);
    worker.handle(WriteChunk{version, older.node, 0, memory.span(), buffer_bytes, bytes,
                             checksum(memory.span())});
    seal.object_bytes = {{older.node, bytes + buffer_bytes}};
    worker.handle(seal);
    EXPECT_TRUE(record);
    const FileOf file{version, run, older.node};
    world.segments[file] = bytes_of(world.network, older.node, segment_of(file));
    world.manifests[file] = bytes_of(world.network, older.node, manifest_of(file));
    return file;
  }
  HeldFile held(const FileOf& file) {
    HeldFile one = store::held_segment(format::decode_manifest(world.manifests.at(file)).value());
    one.segment_bytes = world.segments.at(file).size();
    return one;
  }
  void seal(const FileOf& file) {
    Node& node = world.network[file.node];
    node.directory->add(held(file));
    node.replicator->sealed(held(file));
  }

  ProtectedWorld world{4};
};

TEST_F(NeedsCopies, ACopyComesWithWhatItNeeds) {
  SCOPED_TRACE(test::replay());
  for (NodeId owner = 0; owner < 4; ++owner) {
    const FileOf older = world.write(owner, 1, 5);
    world.network[owner].directory->add(held(older));  // and no copies of it are wanted
    const FileOf file = write_needing(2, older);
    seal(file);
  }
  world.network.run_for();
  for (NodeId owner = 0; owner < 4; ++owner) {
    EXPECT_TRUE(world.told(owner, 2));
    EXPECT_EQ(world.copies({2, run, owner}), 2u);
    for (NodeId disk = 0; disk < 4; ++disk) {
      const FileOf file{2, run, owner}, older{1, run, owner};
      if (!has_copy(world.network, disk, file, world.segments[file], world.manifests[file])) {
        continue;
      }
      EXPECT_TRUE(
          has_copy(world.network, disk, older, world.segments[older], world.manifests[older]))
          << "disk " << disk << " of node " << owner;
      EXPECT_EQ(world.network[disk].state.versions.is_pinned(1), false);
    }
  }
  world.expect_rest();
}

// Its owner has lost it, so that no version is protected that could not be read.
TEST_F(NeedsCopies, NoneIsKeptWithoutWhatItNeeds) {
  SCOPED_TRACE(test::replay());
  const FileOf older = world.write(0, 1, 5);
  const FileOf file = write_needing(2, older);
  seal(file);
  world.network.run_for();
  EXPECT_FALSE(world.told(0, 2));
  EXPECT_EQ(world.copies(file), 1u);
  const auto why = world.network[0].replicator->blockers(2);
  ASSERT_TRUE(why);
  EXPECT_THAT(why->message(), HasSubstr("it needs version 1, whose segment of node 0 is missing"));
}

// An agent that died has left a part of a copy: its segment, perhaps not all of it.
TEST_F(NeedsCopies, ASegmentWithoutItsManifestIsNoCopyOfWhatIsNeeded) {
  SCOPED_TRACE(test::replay());
  const FileOf older = world.write(0, 1, 5);
  for (NodeId disk = 1; disk < 4; ++disk) {
    const auto tier = tier_on(*world.network.disks[disk]);
    ASSERT_TRUE(tier->put(segment_of(older), world.segments[older]).ok());
  }
  const FileOf file = write_needing(2, older);
  seal(file);
  world.network.run_for();
  EXPECT_FALSE(world.told(0, 2));
  EXPECT_EQ(world.copies(file), 1u);
  const auto why = world.network[0].replicator->blockers(2);
  ASSERT_TRUE(why);
  EXPECT_THAT(why->message(), HasSubstr("whose manifest of node 0 is not here"));
}

// The store does not look at pins any more.
TEST_F(NeedsCopies, NoneIsBegunWhileWhatItNeedsIsBeingRemoved) {
  SCOPED_TRACE(test::replay());
  const FileOf older = world.write(0, 1, 5);
  world.network[0].directory->add(held(older));
  const FileOf file = write_needing(2, older);
  for (NodeId node = 1; node < 4; ++node) {
    VersionTable& versions = world.network[node].state.versions;
    StoredVersion one;
    one.version = 1;
    one.level = Level::local;
    one.record.version = 1;
    one.record.run = run;
    versions.found(one, Where::disk);
    versions.ordered(1, StoreOrder::remove);
  }
  seal(file);
  world.network.run_for();
  EXPECT_EQ(world.copies(file), 1u);
  for (NodeId node = 1; node < 4; ++node) {
    world.network[node].state.versions.ordered(1, StoreOrder::remove, false);
  }
  world.network.run_for();
  EXPECT_TRUE(world.told(0, 2));
  EXPECT_EQ(world.copies(file), 2u);
}

TEST_F(NeedsCopies, ACopyGetsTheNeedsIntoItsRecord) {
  SCOPED_TRACE(test::replay());
  const FileOf older = world.write(0, 1, 5);
  world.network[0].directory->add(held(older));
  const FileOf file = write_needing(2, older);
  format::CommitRecord record;
  record.job = "job";
  record.version = 2;
  record.run = run;
  record.nodes = record.ranks = 4;
  seal(file);
  world.network[0].replicator->recorded(record);
  world.network.run_for();
  std::size_t found = 0;
  for (NodeId disk = 1; disk < 4; ++disk) {
    const auto tier = tier_on(*world.network.disks[disk]);
    const StoredVersion there = store::look_at(*tier, "job", 2);
    if (there.level == Level::none) continue;
    ++found;
    EXPECT_EQ(there.record.needs, (std::vector<format::Need>{{1, run}}));
  }
  EXPECT_EQ(found, 1u);
}

}  // namespace
}  // namespace backstay::agent::testing
