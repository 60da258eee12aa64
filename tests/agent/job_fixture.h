// A job over a store on the machine's disk, whose reads and writes fail on demand.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "format/names.h"
#include "harness.h"
#include "io/posix.h"
#include "refusing_tier.h"
#include "tier/dir.h"

namespace backstay::agent::testing {

inline std::vector<std::byte> pattern(Rank rank, VersionNumber version, std::size_t size) {
  std::vector<std::byte> data(size);
  for (std::size_t at = 0; at < size; ++at) {
    data[at] = static_cast<std::byte>((at * 31 + rank * 7 + version * 101 + at / 4096) & 0xff);
  }
  return data;
}

class JobTest : public ::testing::Test {
 public:
  JobTest() {
    std::string name = ::testing::TempDir() + "backstay-job-XXXXXX";
    dir_ = ::mkdtemp(name.data());
  }
  ~JobTest() override {
    job_.reset();  // its store still writes
    std::filesystem::remove_all(dir_);
  }

 protected:
  static constexpr std::uint32_t buffer_bytes = JobHarness::buffer_bytes;
  bool writing_fails() { return job_->job().state().versions.last_not_written().has_value(); }
  // Another agent on the same disk: what a crash of the first one leaves.
  void open(std::uint32_t buffers) {
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
  wire::Captured save(std::uint32_t ranks, VersionNumber version, std::size_t size) {
    return job_->capture(ranks, version, [&](Rank rank) { return pattern(rank, version, size); });
  }
  std::string path(VersionNumber version, const std::string& file) const {
    return dir_ + "/" + format::version_folder("job", version) + "/" + file;
  }
  void flip_byte(const std::string& file, std::uint64_t offset) {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(stream.good()) << file;
    stream.seekg(static_cast<std::streamoff>(offset));
    const char byte = static_cast<char>(stream.get() ^ 0x10);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.put(byte);
  }
  void expect_back(const JobHarness::Back& back, std::uint32_t ranks, VersionNumber version,
                   std::size_t size) {
    ASSERT_EQ(back.code, Code::ok) << back.message;
    EXPECT_EQ(back.version, version);
    for (Rank rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(back.data.at(rank) == pattern(rank, version, size)) << "rank " << rank;
    }
  }

  std::string dir_;
  std::shared_ptr<Warning> trouble_ = std::make_shared<Warning>();
  std::unique_ptr<JobHarness> job_;
};

}  // namespace backstay::agent::testing
