// What the fixed-size records of this folder share: a plain struct that mirrors the byte table of
// the format page, copied to and from bytes. Private to src/format.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/bytes.h"
#include "base/checksum.h"
#include "base/ids.h"
#include "base/result.h"
#include "format/number.h"

namespace backstay::format::layout {

inline constexpr std::size_t job_width = 104;

using Magic = std::array<char, 8>;
using JobField = std::array<char, job_width>;

constexpr Magic magic(std::string_view text) {
  Magic out{};
  std::copy_n(text.begin(), out.size(), out.begin());
  return out;
}

template <typename T>
Bytes bytes_of(const T& record) {
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>,
                "no padding on the disk");
  return std::as_bytes(std::span(&record, 1));
}

// Precondition: at least sizeof(T) bytes at `at`.
template <typename T>
T read(Bytes bytes, std::size_t at = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  T record;
  std::memcpy(&record, bytes.data() + at, sizeof record);
  return record;
}

// The checksum of a record whose last 8 bytes are the place for it.
template <typename T>
std::uint64_t checksum_of(const T& record) {
  return checksum(bytes_of(record).first(sizeof record - sizeof(std::uint64_t)));
}

inline Error damaged(std::string_view what, std::string_view why) {
  return Error(Code::corrupt, std::string(what) + ": " + std::string(why));
}

// What is said of a number that is not ours.
inline Error other_format(std::string_view what, std::uint32_t number) {
  const std::string ours = std::to_string(format_number);
  if (number != 1) {
    return Error(Code::format, std::string(what) + ": has format " + std::to_string(number) +
                                   ", this release reads format " + ours);
  }
  return Error(Code::format,
               std::string(what) +
                   ": has format 1, which release 0.1.0 wrote while it was in development; this "
                   "release reads format " +
                   ours + " alone, so begin without this version, or read it with that one");
}

// The order of docs/format/README.md: magic, format number, then the checksum. Nothing else of a
// record is to be believed before this has succeeded. T begins with magic and format.
template <typename T>
Result<T> read_record(Bytes bytes, const Magic& expected, std::string_view what) {
  if (bytes.size() < sizeof(T)) {
    return damaged(what, "only " + std::to_string(bytes.size()) + " bytes long");
  }
  const T record = read<T>(bytes);
  if (record.magic != expected) {
    return Error(Code::format, std::string(what) + ": does not begin with " +
                                   std::string(expected.data(), expected.size()));
  }
  if (record.format != format_number) return other_format(what, record.format);
  if (record.checksum != checksum_of(record)) return damaged(what, "checksum does not match");
  return record;
}

inline JobField job_field(std::string_view job) {
  JobField field{};
  std::copy_n(job.begin(), std::min(job.size(), field.size()), field.begin());
  return field;
}

// The name, which must be a good one and be followed by zeros only.
inline Result<std::string> job_of(const JobField& field, std::string_view what) {
  const auto end = std::find(field.begin(), field.end(), '\0');
  std::string job(field.begin(), end);
  const bool zeros = std::all_of(end, field.end(), [](char c) { return c == '\0'; });
  if (!zeros || !check_job_name(job).ok()) return damaged(what, "holds no valid job name");
  return job;
}

inline bool all_zero(Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace backstay::format::layout
