// The process of bench/transparent under `backstay run`, with an agent: how long a version takes to
// the disk, beside a raw write of its bytes; and how long it takes from there into a new process,
// beside a raw read. The pool has room for a quarter of the process (16 MiB at least), as on a node
// whose ranks fill its memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness/program.h"
#include "bench/harness/samples.h"

namespace backstay::bench {

struct SavedJob {
  std::vector<std::string> words;  // the program that is saved
  std::string ready;               // a file that it makes once it has filled its memory
  std::uint64_t mib = 0;
};

// Adds local_s, raw_write_s, restart_cold_s, raw_read_s and, into memory that nobody has touched,
// raw_read_new_s, each `repetitions` times. Ends the benchmark if something fails.
void measure_job(const SavedJob& job, const CommonOptions& options, Samples& samples);

}  // namespace backstay::bench
