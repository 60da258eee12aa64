// What the tests of the directory tier do with it: versions as docs/format/manifest.md commits
// them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "aligned_bytes.h"
#include "expect_status.h"
#include "io/faulty.h"
#include "io/memory.h"
#include "tier/dir.h"

namespace backstay::testing {

inline constexpr std::size_t segment_bytes = 16 * 1024;
inline constexpr std::size_t request_bytes = 4 * 1024;

inline std::string folder_of(std::uint64_t version) { return "job/v" + std::to_string(version); }

// `readers`: of several tiers on the same `fs`.
inline Result<std::unique_ptr<tier::Tier>> open_tier(
    io::FileSystem& fs, bool recycle, std::shared_ptr<tier::OpenReaders> readers,
    std::shared_ptr<tier::SafeFolders> folders = {}) {
  tier::DirOptions options;
  options.root = "/tier";
  options.recycle = recycle;
  options.spare_bytes_min = 4096;
  options.readers = std::move(readers);
  options.folders = std::move(folders);
  const auto make_ring = []() -> Result<std::unique_ptr<io::Ring>> {
    return io::make_memory_ring();
  };
  return tier::open_dir_tier(fs, make_ring, options);
}

// Opens a tier on `fs` whose rings finish in an order given by `seed`; all faults come from
// `faults`.
inline Result<std::unique_ptr<tier::Tier>> open_tier(io::FileSystem& fs, bool recycle,
                                                     std::uint64_t seed = 0,
                                                     std::shared_ptr<io::Faults> faults = nullptr) {
  const auto make_ring = [=]() -> Result<std::unique_ptr<io::Ring>> {
    auto ring = io::make_memory_ring({.depth = 3, .seed = seed});
    if (faults == nullptr) return ring;
    return io::make_faulty_ring(std::move(ring), faults);
  };
  tier::DirOptions options;
  options.root = "/tier";
  options.recycle = recycle;
  options.spare_bytes_min = 4096;
  return tier::open_dir_tier(fs, make_ring, options);
}

// Errors: the first of any step.
inline Status write_segment(tier::Tier& tier, std::uint64_t version) {
  AlignedBytes bytes(segment_bytes);  // outlives the writer, which may still be writing it
  fill_pattern(bytes.all(), version);
  BACKSTAY_ASSIGN(auto writer, tier.create(folder_of(version) + "/seg", segment_bytes));
  const auto reap = [&]() -> Status {
    for (const auto& one : writer->reap(true)) BACKSTAY_TRY(one.status);
    return {};
  };
  for (std::size_t at = 0; at < segment_bytes; at += request_bytes) {
    if (writer->in_flight() == writer->depth()) BACKSTAY_TRY(reap());
    writer->write(at, bytes.part(at, request_bytes), at);
  }
  while (writer->in_flight() > 0) BACKSTAY_TRY(reap());
  return writer->seal(segment_bytes);
}

// The version is reported once this has returned without error.
inline Status commit_version(tier::Tier& tier, std::uint64_t version) {
  BACKSTAY_TRY(write_segment(tier, version));
  BACKSTAY_TRY(tier.put(folder_of(version) + "/manifest", pattern(700, version)));
  return tier.put(folder_of(version) + "/commit.local", pattern(512, version));
}

// Whether the version has a commit record; if so, that everything of it is there. `*why` says what
// is not.
inline bool is_committed(tier::Tier& tier, std::uint64_t version, std::string* why) {
  const std::string folder = folder_of(version);
  const auto commit = tier.get(folder + "/commit.local", 512);
  if (!commit.ok()) {
    if (commit.error().code() != Code::not_found) *why += commit.error().to_string();
    return false;
  }
  if (*commit != pattern(512, version)) *why += " torn commit record of " + folder;
  const auto manifest = tier.get(folder + "/manifest", 700);
  if (!manifest.ok() || *manifest != pattern(700, version)) *why += " no manifest in " + folder;
  const auto segment = tier.get(folder + "/seg", segment_bytes);
  const bool whole = segment.ok() && segment->size() == segment_bytes &&
                     first_difference(*segment, version) == segment_bytes;
  if (!whole) *why += " wrong segment in " + folder;
  return true;
}

}  // namespace backstay::testing
