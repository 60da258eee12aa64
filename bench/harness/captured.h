// The pattern of bench/write_pattern, written by programs that know nothing of Backstay and whose
// files are captured: by the library that `backstay exec` loads, or in a folder that `backstay
// mount` has mounted.
#pragma once

#include <cstdint>
#include <string>

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
};

// Why nothing can be mounted here; "": it can.
std::string cannot_mount();

class CapturedPattern {
 public:
  // Makes the folders, and mounts where asked. Ends the program where that fails.
  CapturedPattern(CapturedOptions options, bool by_mount);
  ~CapturedPattern();  // unmounts
  CapturedPattern(const CapturedPattern&) = delete;
  CapturedPattern& operator=(const CapturedPattern&) = delete;

  // All processes write and close one file each, at once. blocked_s: from the open to the end of
  // the close, of the slowest; on_disk_s: from the first open until all files are at their places.
  void measure(Samples& samples);

 private:
  std::string file_of(int process) const;

  const CapturedOptions options_;
  const bool by_mount_;
  const std::string place_;    // where the programs write
  const std::string at_home_;  // where the files come
};

}  // namespace backstay::bench
