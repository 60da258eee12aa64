// Commit record (docs/format/manifest.md): struct <-> bytes, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "format/need.h"

namespace backstay::format {

inline constexpr std::size_t commit_record_bytes = 512;

struct CommitRecord {
  std::string job;
  Level level = Level::local;
  VersionNumber version = 0;
  RunId run = 0;
  std::uint32_t nodes = 1;
  std::uint32_t ranks = 1;
  std::uint64_t payload_bytes = 0;
  std::uint64_t manifests_sum = 0;
  std::uint64_t captured_ns = 0;
  std::uint64_t committed_ns = 0;
  std::vector<Need> needs = {};  // of the manifests that it counts; sorted by version
};

// Precondition: wrong_with_needs finds nothing.
Buffer encode(const CommitRecord& record);
// Errors: format (not ours, or of another format), corrupt (says which check failed).
Result<CommitRecord> decode_commit(Bytes bytes);

}  // namespace backstay::format
