// Bytes that turn bad after they were synced: flipped, cut off, missing, in each file of a version.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/log.h"
#include "format/names.h"
#include "machine.h"
#include "seed.h"

namespace backstay::crash {
namespace {

constexpr std::uint32_t ranks = 2;
constexpr VersionNumber newest = 3, older = 2;

std::vector<std::byte> content(VersionNumber version, Rank rank) {
  Random random(version * 100 + rank);
  std::vector<std::byte> bytes(60'000 + 9'000 * rank + version);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

class Damage : public ::testing::Test {
 protected:
  Damage() : machine_(base_seed()), random_(base_seed()) {
    spdlog::set_level(spdlog::level::off);
    JobHarness& agent = machine_.start_agent();
    agent.join_all(ranks);
    for (VersionNumber version = 1; version <= newest; ++version) {
      agent.capture(ranks, version, [version](Rank rank) { return content(version, rank); });
      agent.wait_local(version);
    }
    agent.run_until_idle();
    machine_.kill_agent();
  }

  static std::string folder(VersionNumber version) {
    return root + "/" + format::version_folder("job", version);
  }
  static std::string manifest(VersionNumber v) { return format::manifest_name(folder(v), 0); }
  static std::string segment(VersionNumber v) { return format::segment_name(folder(v), 0); }
  static std::string commit(VersionNumber v) {
    return format::commit_name(folder(v), Level::local);
  }

  Buffer read(const std::string& path) {
    return io::read_file(machine_.disk(), path, 1 << 20).value();
  }
  void write(const std::string& path, const Buffer& bytes) {
    auto file = machine_.disk().open(path, io::Open::create).value();
    ASSERT_TRUE(file->write_at(0, bytes).ok());
  }

  // A new agent, all ranks restart; the rule holds whatever the disk has become. The version that
  // came back, 0 for a clear error.
  VersionNumber restart() {
    JobHarness& agent = machine_.start_agent();
    agent.join_all(ranks);
    const JobHarness::Back back = agent.restart(ranks);
    VersionNumber version = 0;
    if (back.code == Code::ok) {
      version = back.version;
      for (Rank rank = 0; rank < ranks; ++rank) {
        EXPECT_TRUE(back.data.at(rank) == content(version, rank)) << "wrong bytes";
      }
    } else {
      EXPECT_EQ(back.code, Code::corrupt);
      EXPECT_FALSE(back.message.empty());
    }
    agent.run_until_idle();
    machine_.kill_agent();
    for (const VersionNumber marked : {older, newest}) {
      (void)machine_.disk().remove(folder(marked) + "/" + std::string(format::damaged_name));
    }
    return version;
  }
  VersionNumber restart_with(const std::string& path, const Buffer& bytes) {
    const Buffer good = read(path);
    write(path, bytes);
    const VersionNumber version = restart();
    write(path, good);
    return version;
  }
  VersionNumber restart_flipped(const std::string& path, std::size_t at) {
    Buffer bytes = read(path);
    bytes[at] ^= static_cast<std::byte>(1U << random_.below(8));
    return restart_with(path, bytes);
  }

  Machine machine_;
  Random random_;
};

TEST_F(Damage, NoneAtAll) { EXPECT_EQ(restart(), newest); }

TEST_F(Damage, EveryByteOfTheCommitRecordCounts) {
  for (std::size_t at = 0; at < read(commit(newest)).size(); ++at) {
    ASSERT_EQ(restart_flipped(commit(newest), at), older) << "byte " << at;
  }
}

TEST_F(Damage, EveryByteOfTheManifestCounts) {
  for (std::size_t at = 0; at < read(manifest(newest)).size(); ++at) {
    ASSERT_EQ(restart_flipped(manifest(newest), at), older) << "byte " << at;
  }
}

// The header and the zeros between the chunks are not needed for a restart; payload is.
TEST_F(Damage, BytesOfTheSegment) {
  const std::size_t size = read(segment(newest)).size();
  for (std::size_t at = 0; at < 4096; at += at < 160 ? 1 : 61) {
    ASSERT_EQ(restart_flipped(segment(newest), at), newest) << "byte " << at;
  }
  int found = 0;
  for (int sample = 0; sample < 400; ++sample) {
    const std::size_t at = 4096 + random_.below(size - 4096);
    const VersionNumber version = restart_flipped(segment(newest), at);
    ASSERT_NE(version, 0u) << "byte " << at;
    found += version == older ? 1 : 0;
  }
  EXPECT_GT(found, 300) << "most of a segment is payload";
}

TEST_F(Damage, FilesThatAreCutOff) {
  for (const std::string& path : {commit(newest), manifest(newest), segment(newest)}) {
    const Buffer good = read(path);
    const std::size_t step = good.size() < 4096 ? 1 : good.size() / 100;
    for (std::size_t size = 0; size < good.size(); size += step) {
      const Buffer cut(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
      ASSERT_EQ(restart_with(path, cut), older) << path << " cut to " << size;
    }
    Buffer longer = good;
    longer.resize(good.size() + 100);
    EXPECT_NE(restart_with(path, longer), 0u) << path;
  }
}

TEST_F(Damage, FilesThatAreMissing) {
  for (const std::string& path : {manifest(newest), segment(newest)}) {
    const Buffer good = read(path);
    ASSERT_TRUE(machine_.disk().remove(path).ok());
    EXPECT_EQ(restart(), older) << path;
    write(path, good);
  }
  EXPECT_EQ(restart(), newest);
  // Without its commit record a version does not exist: it is removed and the older one is used.
  ASSERT_TRUE(machine_.disk().remove(commit(newest)).ok());
  EXPECT_EQ(restart(), older);
}

TEST_F(Damage, FilesOfAnotherVersionInItsPlace) {
  for (const auto& name : {&Damage::manifest, &Damage::commit, &Damage::segment}) {
    EXPECT_EQ(restart_with(name(newest), read(name(older))), older);
  }
}

TEST_F(Damage, AllVersions) {
  for (const VersionNumber version : {older, newest}) {
    Buffer bytes = read(segment(version));
    bytes[5000] ^= std::byte{1};
    write(segment(version), bytes);
  }
  EXPECT_EQ(restart(), 0u);
}

// A version that was set aside stays so for the next agent, until it is verified.
TEST_F(Damage, IsRemembered) {
  const Buffer good = read(segment(newest));
  Buffer bytes = good;
  bytes[5000] ^= std::byte{1};
  write(segment(newest), bytes);
  JobHarness& agent = machine_.start_agent();
  agent.join_all(ranks);
  EXPECT_EQ(agent.restart(ranks).version, older);
  agent.run_until_idle();
  write(segment(newest), good);
  EXPECT_EQ(restart(), older);
  EXPECT_EQ(restart(), newest) << "the mark was removed";
}

}  // namespace
}  // namespace backstay::crash
