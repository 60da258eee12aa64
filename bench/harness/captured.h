// The pattern of bench/write_pattern, written by programs that know nothing of Backstay and whose
// files are captured: by the library that `backstay exec` loads, or in a folder that `backstay
// mount` has mounted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/harness/samples.h"

namespace backstay::bench {

struct CapturedOptions {
  std::string backstay;  // the programs
  std::string writer;    // bench/pattern_writer
  std::string config;    // of a running agent, whose job the files are
  std::string dir;       // the files lie in a folder below
  int processes = 1;
  std::uint64_t seed = 0;  // of the pattern
  unsigned shrink = 1;
  int checkpoints = 1;  // of measure_run()
  int work = 0;
};

// Why nothing can be mounted here; "": it can.
std::string cannot_mount();

class CapturedPattern {
 public:
  struct Written {  // by one process
    long long began_ns = 0;
    long long closed_ns = 0;
    std::uintmax_t bytes = 0;
  };
  // Makes the folders, and mounts where asked. Ends the program where that fails.
  CapturedPattern(CapturedOptions options, bool by_mount);
  ~CapturedPattern();  // unmounts
  CapturedPattern(const CapturedPattern&) = delete;
  CapturedPattern& operator=(const CapturedPattern&) = delete;

  // All processes write and close one file each, at once. blocked_s: from the open to the end of
  // the close, of the slowest; on_disk_s: from the first open until all files are at their places.
  void measure(Samples& samples);
  // run_s: of a program that saves `checkpoints` times, until all is at its place; program_s: until
  // it has no more to do itself.
  void measure_run(Samples& samples);

 private:
  struct Took {
    double slowest_s = 0;  // of one process, from its first open to its last close
    double span_s = 0;     // from the first open to the last close
    double home_s = 0;     // from the first open until all files are at their places
  };
  Took run(int checkpoints, int work) const;
  Took took(const std::vector<Written>& all, std::int64_t home_ns) const;
  std::string file_of(int process) const;

  const CapturedOptions options_;
  const bool by_mount_;
  const std::string place_;    // where the programs write
  const std::string at_home_;  // where the files come
};

}  // namespace backstay::bench
