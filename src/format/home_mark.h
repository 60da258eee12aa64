// The home mark of a node's part of a version (docs/format/home.md): structs <-> bytes, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

namespace backstay::format {

inline constexpr std::size_t home_mark_header_bytes = 144;
inline constexpr std::size_t home_mark_why_max = 1000;

enum class NotHome : std::uint8_t {
  waits = 1,  // it will be tried again
  kept = 2,   // another program's newer file is at its path, or nothing is
};

struct FileNotHome {
  std::string path;
  NotHome how = NotHome::waits;
  std::string why;
  friend bool operator==(const FileNotHome&, const FileNotHome&) = default;
};

struct HomeMark {
  std::string job;
  NodeId node = 0;
  VersionNumber version = 0;
  RunId run = 0;
  std::vector<FileNotHome> files;  // sorted by path, each path once
};

// `why` is cut to home_mark_why_max bytes. Precondition: paths are what check_file_path accepts,
// sorted, each once.
Buffer encode(const HomeMark& mark);
// Errors: format (not ours, or of another format), corrupt (says what is wrong).
Result<HomeMark> decode_home_mark(Bytes bytes);

}  // namespace backstay::format
