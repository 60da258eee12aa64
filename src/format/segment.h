// Segment header (docs/format/segment.md): struct <-> bytes, no I/O.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

namespace backstay::format {

inline constexpr std::size_t segment_alignment = 4096;
inline constexpr std::size_t segment_header_bytes = 4096;

// Bytes of the slot that holds a payload of `length`.
constexpr std::uint64_t slot_bytes(std::uint64_t length) {
  return (length + segment_alignment - 1) / segment_alignment * segment_alignment;
}

struct SegmentHeader {
  std::string job;
  NodeId node = 0;
  VersionNumber version = 0;
  RunId run = 0;
  std::uint64_t created_ns = 0;
};

Buffer encode(const SegmentHeader& header);
Result<SegmentHeader> decode_segment_header(Bytes block);

}  // namespace backstay::format
