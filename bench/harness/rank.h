// What every rank of the checkpoint benchmark can do on command.
#pragma once

#include <string>

#include "bench/harness/workers.h"

namespace backstay::bench {

// Commands. The argument is the seed of the content where there is one.
enum RankCommand {
  fill,        // new content into the protected memory
  copy,        // timed: plain memcpy, private to private, one call
  join,        // timed: backstay_init_group, then protect
  checkpoint,  // timed: backstay_checkpoint; later_ns: backstay_wait for level local
  restart,     // timed: backstay_restart
  verify,      // fails if the protected memory does not hold the seed's content
  leave,       // backstay_finalize
};

struct RankMemory {
  std::size_t bytes = 0;
  bool with_copy = true;  // has a second block, for `copy`
};

// Builds one rank with `memory` touched before the first command.
Workers::Build make_rank(RankMemory memory, std::string config_path);

// The seed of a rank's content.
constexpr std::uint64_t rank_seed(std::uint64_t seed, int rank) {
  return seed * 100'003 + static_cast<std::uint64_t>(rank);
}

}  // namespace backstay::bench
