// The table of an object of kind files (docs/format/files.md): structs <-> bytes, no I/O.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/footer.h"

namespace backstay::format {

inline constexpr std::size_t files_max = 1'000'000;
inline constexpr std::size_t file_path_max = 4095;
inline constexpr std::size_t file_name_max = 255;  // of a component
inline constexpr std::size_t extent_bytes = 24;
// A record without its path and extents: length of the path, mode, number of extents, size, when it
// came to its path, two times.
inline constexpr std::uint64_t file_record_fixed_bytes = 2 + 4 + 4 + 8 + 8 + 2 * (8 + 4);
inline constexpr std::uint64_t file_record_bytes_min = file_record_fixed_bytes + 2;

// A piece of a file: so many bytes of it are those of the object from there on.
struct Extent {
  std::uint64_t file_offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t object_offset = 0;
  friend bool operator==(const Extent&, const Extent&) = default;
};

// As the kernel counts: seconds since 1970-01-01 UTC, and how much more.
struct FileTime {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;
  friend bool operator==(const FileTime&, const FileTime&) = default;
};

struct CapturedFile {
  std::string path;  // absolute, bytes
  std::uint32_t mode = 0;
  std::uint64_t bytes = 0;
  std::uint64_t placed_ns =
      0;  // when it came to this path: of two records with one path the later counts
  FileTime modified;
  FileTime accessed;
  std::vector<Extent> extents;  // in the order of writing: a later one wins
  friend bool operator==(const CapturedFile&, const CapturedFile&) = default;
};

// A path as the format allows it: absolute, without components that are empty, "." or "..". Errors:
// invalid, too_large.
Status check_file_path(std::string_view path);

// Table and footer, to be put at aligned_in_object(length of the payload), which is `table_offset`;
// zeros in between. Precondition: files are sorted by path as bytes, each path once, and hold what
// check_file_path and decode_files accept.
Buffer encode_files(std::span<const CapturedFile> files, std::uint64_t table_offset);

// Errors: corrupt (says what is wrong). Every extent returned lies inside of its file and of the
// payload.
Result<std::vector<CapturedFile>> decode_files(Bytes table, const Footer& footer);

}  // namespace backstay::format
