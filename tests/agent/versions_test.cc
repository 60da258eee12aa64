// Which versions a job has: what their numbers and folders may be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "agent/names.h"
#include "harness.h"
#include "io/posix.h"
#include "tier/dir.h"

namespace backstay::agent::testing {
namespace {

namespace fs = std::filesystem;
constexpr std::uint32_t buffers = 64;

class Versions : public ::testing::Test {
 protected:
  Versions() {
    std::string name = ::testing::TempDir() + "backstay-versions-XXXXXX";
    dir_ = ::mkdtemp(name.data());
    open();
    job_->join_all(1);
  }
  ~Versions() override {
    job_.reset();  // its store still writes
    fs::remove_all(dir_);
  }

  // Another agent on the same disk.
  void open() {
    job_.reset();
    job_ = std::make_unique<JobHarness>(buffers, [this] {
      tier::DirOptions options;
      options.root = dir_;
      return tier::open_dir_tier(
          io::posix_filesystem(), [] { return io::make_ring(io::RingOptions{}, nullptr); },
          options);
    });
  }
  static std::vector<std::byte> content(VersionNumber version) {
    return std::vector<std::byte>(2 * JobHarness::buffer_bytes,
                                  static_cast<std::byte>(version & 0xff));
  }
  wire::Captured save(VersionNumber version) {
    return job_->capture(1, version, [&](Rank) { return content(version); });
  }
  void save_local(VersionNumber version) {
    ASSERT_EQ(save(version).code, Code::ok);
    job_->wait_local(version);
  }
  void comes_back(VersionNumber version) {
    const auto back = job_->restart(1);
    ASSERT_EQ(back.code, Code::ok) << back.message;
    EXPECT_EQ(back.version, version);
    EXPECT_TRUE(back.data.at(0) == content(version));
  }

  std::string dir_;
  std::unique_ptr<JobHarness> job_;
};

TEST(Names, OnlyWhatWeWriteIsAVersion) {
  EXPECT_EQ(version_folder("job", 12), "job/v0000000000000012");
  EXPECT_EQ(version_of_folder("v0000000000000012"), 12u);
  EXPECT_EQ(version_of_folder("v9999999999999999"), version_max);
  for (const char* name :
       {"v0000000000000000", "v10000000000000000", "v00000000000000012", "v12", "v",
        "v000000000000001x", "v-000000000000012", "V0000000000000012", ""}) {
    EXPECT_EQ(version_of_folder(name), std::nullopt) << name;
  }
}

// The numbers after it would not fit into a folder's name, and nobody would find the versions again.
TEST_F(Versions, AFolderWithoutAVersionDoesNotSetTheNextNumber) {
  save_local(1);
  for (const char* name : {"v9999999999999999", "v10000000000000000", "v77"}) {
    fs::create_directory(dir_ + "/job/" + name);
  }
  open();
  job_->join_all(1, 8);
  EXPECT_EQ(job_->welcome().newest, 1u);
  EXPECT_FALSE(fs::exists(dir_ + "/job/v9999999999999999")) << "the rest of an unfinished version";
  EXPECT_TRUE(fs::exists(dir_ + "/job/v77")) << "it is not ours";
  save_local(2);
  open();
  job_->join_all(1, 9);
  comes_back(2);
}

TEST_F(Versions, TheLargestVersionIsTheLast) {
  save_local(version_max);
  const auto refused = save(version_max + 1);
  EXPECT_EQ(refused.code, Code::too_large);
  EXPECT_THAT(refused.message, ::testing::HasSubstr("another name"));
  open();
  job_->join_all(1, 8);
  comes_back(version_max);
}

}  // namespace
}  // namespace backstay::agent::testing
