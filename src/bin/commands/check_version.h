// Reads every byte of a version and compares it with its checksums, with several threads.
#pragma once

#include <string>
#include <vector>

#include "bin/parts/progress.h"
#include "bin/parts/stored.h"

namespace backstay::bin {

struct Damage {
  NodeId node = 0;
  std::string what;  // "rank 3, bytes 4194304 to 8388607 of its object: ..."
};

struct CheckResult {
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;
  std::uint64_t regions = 0;
  std::uint64_t files = 0;      // captured ones
  std::uint64_t damages = 0;    // how many were found
  std::vector<Damage> damaged;  // the first of them
};

// Damage is a result, not an Error. Errors: those that prevent the check (io, permission),
// not_found if the version is removed meanwhile.
Result<CheckResult> check_version(Stored& stored, const std::string& job,
                                  const store::StoredVersion& version, unsigned threads,
                                  Progress& progress);

}  // namespace backstay::bin
