#include "job_fixture.h"

#include <filesystem>
#include <fstream>

#include "format/names.h"
#include "io/posix.h"
#include "tier/dir.h"

namespace backstay::agent::testing {

std::vector<std::byte> pattern(Rank rank, VersionNumber version, std::size_t size) {
  std::vector<std::byte> data(size);
  for (std::size_t at = 0; at < size; ++at) {
    data[at] = static_cast<std::byte>((at * 31 + rank * 7 + version * 101 + at / 4096) & 0xff);
  }
  return data;
}

JobTest::JobTest() {
  std::string name = ::testing::TempDir() + "backstay-job-XXXXXX";
  dir_ = ::mkdtemp(name.data());
}

JobTest::~JobTest() {
  job_.reset();  // its store still writes
  std::filesystem::remove_all(dir_);
}

void JobTest::open(std::uint32_t buffers) {
  job_.reset();
  job_ = std::make_unique<JobHarness>(buffers, [this]() -> Result<std::unique_ptr<tier::Tier>> {
    tier::DirOptions options;
    options.root = dir_;
    BACKSTAY_ASSIGN(auto inner,
                    tier::open_dir_tier(
                        io::posix_filesystem(),
                        [] { return io::make_ring(io::RingOptions{}, nullptr); }, options));
    return std::unique_ptr<tier::Tier>(new RefusingTier(std::move(inner), trouble_));
  });
}

wire::Captured JobTest::save(std::uint32_t ranks, VersionNumber version, std::size_t size) {
  return job_->capture(ranks, version, [&](Rank rank) { return pattern(rank, version, size); });
}

std::string JobTest::path(VersionNumber version, const std::string& file) const {
  return dir_ + "/" + format::version_folder("job", version) + "/" + file;
}

void JobTest::flip_byte(const std::string& file, std::uint64_t offset) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  ASSERT_TRUE(stream.good()) << file;
  stream.seekg(static_cast<std::streamoff>(offset));
  const char byte = static_cast<char>(stream.get() ^ 0x10);
  stream.seekp(static_cast<std::streamoff>(offset));
  stream.put(byte);
}

void JobTest::expect_back(const JobHarness::Back& back, std::uint32_t ranks, VersionNumber version,
                          std::size_t size) {
  ASSERT_EQ(back.code, Code::ok) << back.message;
  EXPECT_EQ(back.version, version);
  for (Rank rank = 0; rank < ranks; ++rank) {
    EXPECT_TRUE(back.data.at(rank) == pattern(rank, version, size)) << "rank " << rank;
  }
}

}  // namespace backstay::agent::testing
