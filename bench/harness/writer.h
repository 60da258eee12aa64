// One process that saves the pieces of a pattern in the ways that bench/write_pattern compares.
#pragma once

#include <string>

#include "bench/harness/workers.h"

namespace backstay::bench {

inline constexpr std::uint64_t aggregation_threshold = 256 * 1024;  // as in paper 003
inline constexpr std::uint64_t threshold_max = 1 << 20;

enum WriterCommand {
  piece_fill,       // new content; value: bytes of all pieces
  piece_count,      // value: number of pieces
  write_direct,     // timed: one write() a piece into a file of its own, then fsync
  write_aggregate,  // timed: pieces below the threshold (argument) into a buffer, the others as
                    // write_direct; at the end the buffer, then fsync; value: bytes of the buffer
  piece_work,       // what a program does between checkpoints: fills the pieces so often
  pool_join,        // backstay_init_group; every piece becomes a region
  write_pool,       // timed: backstay_checkpoint; later_ns: level local
  pool_save,        // timed: backstay_checkpoint alone
  pool_wait,        // until the last one is local
  pool_restart,     // spoils the pieces, then backstay_restart
  piece_verify,     // fails if the pieces do not hold the seed's content
  pool_leave,       // backstay_finalize
};

struct WriterPlace {
  std::string dir;          // for the files
  std::string config_path;  // for Backstay
  std::uint64_t pattern_seed = 3;
  unsigned shrink = 1;
};

Workers::Build make_writer(const WriterPlace& place);

}  // namespace backstay::bench
