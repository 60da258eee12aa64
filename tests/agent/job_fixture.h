// A job over a store on the machine's disk, whose reads and writes fail on demand.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "harness.h"
#include "refusing_tier.h"

namespace backstay::agent::testing {

std::vector<std::byte> pattern(Rank rank, VersionNumber version, std::size_t size);

class JobTest : public ::testing::Test {
 public:
  JobTest();
  ~JobTest() override;

 protected:
  static constexpr std::uint32_t buffer_bytes = JobHarness::buffer_bytes;
  bool writing_fails() { return job_->job().state().versions.last_not_written().has_value(); }
  // Another agent on the same disk: what a crash of the first one leaves.
  void open(std::uint32_t buffers = 64);
  wire::Captured save(std::uint32_t ranks, VersionNumber version, std::size_t size);
  std::string path(VersionNumber version, const std::string& file) const;
  static void flip_byte(const std::string& file, std::uint64_t offset);
  static void expect_back(const JobHarness::Back& back, std::uint32_t ranks, VersionNumber version,
                          std::size_t size);

  std::string dir_;
  std::shared_ptr<Warning> trouble_ = std::make_shared<Warning>();
  std::unique_ptr<JobHarness> job_;
};

}  // namespace backstay::agent::testing
