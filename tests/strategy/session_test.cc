// Versions of a job without agents: saved, brought back, damaged; and what is refused.
#include <gmock/gmock.h>

#include <fstream>

#include "client/stream_session.h"
#include "format/manifest.h"
#include "format/segment.h"
#include "job.h"
#include "store/job_lock.h"

namespace backstay::strategy::test {
namespace {

using testing::HasSubstr;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class EachWay : public testing::TestWithParam<const char*> {
 protected:
  Job job{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Strategies, EachWay, testing::ValuesIn(ways));

TEST_P(EachWay, ComesBackOnAsManyRanksAndOnOthers) {
  EXPECT_EQ(*job.restart(4), 0U);
  ASSERT_TRUE(job.save(4, 1).ok());
  ASSERT_TRUE(job.save(4, 2).ok());
  for (const int ranks : {4, 3, 7, 2}) EXPECT_EQ(*job.restart(ranks), 2U) << ranks;
  ASSERT_TRUE(job.save(3, 3).ok());
  EXPECT_EQ(*job.restart(4), 3U);
  EXPECT_FALSE(std::filesystem::exists(job.version(1))) << "durable.keep is 2";
}

TEST_P(EachWay, SavesOneVersionAfterTheOther) {
  const Status status = job.run(5, [](Member& member) -> Status {
    for (VersionNumber version = 1; version <= 4; ++version) {
      member.fill(version);
      BACKSTAY_TRY(member.session().checkpoint());
      EXPECT_EQ(member.session().version(), version);
      member.fill(99);  // what was handed over may change
    }
    return member.session().wait(4, Level::durable, 60);
  });
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  EXPECT_EQ(*job.restart(5), 4U);
}

TEST_P(EachWay, WritesMoreThanItsBuffersHold) {
  job.elements = 4'200'001;
  ASSERT_TRUE(job.save(3, 1).ok());
  for (const int ranks : {3, 2}) EXPECT_EQ(*job.restart(ranks), 1U) << ranks;
}

// Nothing of another round, or of the program's memory, gets into the file.
TEST_P(EachWay, EndsSlotsWithZeros) {
  job.elements = 4'200'001;
  ASSERT_TRUE(job.save(3, 1).ok());
  int chunks = 0;
  for (const auto& entry : std::filesystem::directory_iterator(job.version(1))) {
    if (entry.path().extension() != ".manifest") continue;
    const std::string bytes = content_of(entry.path());
    const auto manifest = format::decode_manifest(std::as_bytes(std::span(bytes)));
    ASSERT_TRUE(manifest.ok());
    const std::string segment =
        content_of(std::filesystem::path(entry).replace_extension("segment"));
    for (const format::ChunkEntry& chunk : manifest->chunks) {
      const std::size_t rest = format::slot_bytes(chunk.length) - chunk.length;
      EXPECT_EQ(segment.substr(chunk.segment_offset + chunk.length, rest), std::string(rest, '\0'));
      ++chunks;
    }
  }
  EXPECT_GT(chunks, 3);
}

TEST(FilePerProcess, HasAPartForEachRank) {
  Job job;
  ASSERT_TRUE(job.save(3, 1).ok());
  EXPECT_TRUE(std::filesystem::exists(job.version(1) + "/node-0000002.segment"));
  EXPECT_FALSE(std::filesystem::exists(job.version(1) + "/node-0000003.segment"));
}

TEST(FilePerProcess, KnowsTheLevelOfAVersion) {
  Job job;
  const Status status = job.run(2, [](Member& member) -> Status {
    Level level = Level::local;
    EXPECT_EQ(member.session().test(1, level).error().code(), Code::not_found);
    EXPECT_EQ(level, Level::none);
    member.fill(1);
    BACKSTAY_TRY(member.session().checkpoint());
    EXPECT_TRUE(member.session().test(1, level).ok());
    EXPECT_EQ(level, Level::durable);
    EXPECT_TRUE(member.session().wait(1, Level::protected_, 0).ok());
    std::uint64_t step = 0;
    EXPECT_TRUE(member.session().read_region(1, "step", &step, sizeof step).ok());
    EXPECT_EQ(step, 1U);
    EXPECT_EQ(member.session().read_region(1, "v", &step, sizeof step).error().code(),
              Code::not_found);
    return {};
  });
  EXPECT_TRUE(status.ok()) << status.error().to_string();
}

// --- damage --------------------------------------------------------------------------------------

void flip(const std::string& path, std::uint64_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 4));
}

struct Damage {
  const char* name;
  void (*make)(const std::string& version);
};
const Damage damages[] = {
    {"a chunk", [](const std::string& at) { flip(at + "/node-0000001.segment", 1'100'000); }},
    {"a table",
     [](const std::string& at) {
       flip(at + "/node-0000001.segment",
            std::filesystem::file_size(at + "/node-0000001.segment") - 4096 + 5);
     }},
    {"a manifest", [](const std::string& at) { flip(at + "/node-0000001.manifest", 100); }},
    {"a part is cut off",
     [](const std::string& at) {
       std::filesystem::resize_file(at + "/node-0000001.segment", 1'100'000);
     }},
    {"a segment is gone",
     [](const std::string& at) { std::filesystem::remove(at + "/node-0000001.segment"); }},
    {"a manifest is gone",
     [](const std::string& at) { std::filesystem::remove(at + "/node-0000001.manifest"); }},
    {"the record", [](const std::string& at) { flip(at + "/commit.durable", 60); }},
};

TEST(FilePerProcess, ADamagedVersionIsSkippedByAllRanksAlike) {
  for (const Damage& damage : damages) {
    for (const int ranks : {4, 3}) {
      Job job;
      ASSERT_TRUE(job.save(4, 1).ok());
      ASSERT_TRUE(job.save(4, 2).ok());
      damage.make(job.version(2));
      EXPECT_EQ(*job.restart(ranks), 1U) << damage.name << ", on " << ranks;
      EXPECT_EQ(*job.restart(ranks), 1U) << damage.name;
      ASSERT_TRUE(job.save(ranks, 3).ok()) << "its number is not used again";
      EXPECT_EQ(*job.restart(4), 3U);
    }
  }
}

TEST(FilePerProcess, WhereAllIsDamagedItDoesNotBeginAgain) {
  Job job;
  ASSERT_TRUE(job.save(2, 1).ok());
  damages[0].make(job.version(1));
  EXPECT_EQ(job.restart(2).error().code(), Code::corrupt);
  EXPECT_EQ(job.restart(2).error().code(), Code::corrupt) << "nor the second time";
}

// --- what is refused -----------------------------------------------------------------------------

TEST(FilePerProcess, TwoProgramsOfOneName) {
  Job job;
  std::filesystem::create_directory(job.shared() + "/job");
  const auto other = store::lock_live(job.shared(), "job");
  ASSERT_TRUE(other.ok());
  const Status status = job.save(2, 1);
  EXPECT_EQ(status.error().code(), Code::busy);
  EXPECT_FALSE(std::filesystem::exists(job.version(1)));
}

TEST(FilePerProcess, BesideAnAgentThatServesTheJob) {
  Job job;
  const auto agent = store::lock_job(job.shared() + "/../store", "job");
  ASSERT_TRUE(agent.ok()) << agent.error().to_string();
  EXPECT_EQ(job.save(2, 1).error().code(), Code::busy);
}

TEST(FilePerProcess, WithoutADirectory) {
  Job job;
  std::filesystem::remove(job.shared());
  const Status missing = job.save(2, 1);
  EXPECT_EQ(missing.error().code(), Code::config);
  EXPECT_THAT(missing.error().message(), HasSubstr("no directory on"));
}

TEST(FilePerProcess, FilesAndStreamsNeedAnAgent) {
  Job job;
  const Status status = job.run(1, [](Member& member) -> Status {
    EXPECT_EQ(member.session().route_file("f", 100).error().code(), Code::unsupported);
    const auto streams = member.session().streams();
    EXPECT_EQ(streams.ok() ? Code::ok : streams.error().code(), Code::unsupported);
    return {};
  });
  EXPECT_TRUE(status.ok());
}

}  // namespace
}  // namespace backstay::strategy::test
