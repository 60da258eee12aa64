// The streams of a rank: one region of its object, with an index of its own at its end
// (docs/format/streams.md): structs <-> bytes, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/object.h"

namespace backstay::format {

inline constexpr std::size_t streams_max = 1'000'000;
inline constexpr std::size_t streams_trailer_bytes = 24;
inline constexpr std::string_view streams_region_name = "streams";

struct StreamExtent {
  std::uint64_t offset = 0;  // in the payload
  std::uint64_t bytes = 0;
  bool operator==(const StreamExtent&) const = default;
};

struct Stream {
  std::string name;
  std::uint64_t bytes = 0;
  std::vector<StreamExtent> extents;  // in the order in which they were written
  bool operator==(const Stream&) const = default;

  // The next `count` bytes of the stream lie at `offset`. Precondition: count > 0.
  void append(std::uint64_t offset, std::uint64_t count);
};

// Index and trailer, to be put behind the `bytes` of all streams. Precondition: there is a stream,
// they are at most streams_max, and they are as the page says.
Buffer encode_streams(const std::vector<Stream>& streams, std::uint64_t bytes);

struct StreamsTrailer {
  std::uint64_t index_offset = 0;  // in the payload: the length of the streams' bytes
  std::uint64_t index_bytes = 0;
  std::uint32_t streams = 0;
};
// `last` is the last streams_trailer_bytes bytes of a payload of `payload_bytes`. Errors: corrupt.
Result<StreamsTrailer> decode_streams_trailer(Bytes last, std::uint64_t payload_bytes);

// In the order in which they were opened. Errors: corrupt. Every extent that is returned lies in
// the payload, and all together cover it up to the index.
Result<std::vector<Stream>> decode_streams(Bytes index, const StreamsTrailer& trailer);

// The region of all streams, to be the first of its object.
Region streams_region(std::uint64_t payload_bytes);

// The object's streams; nullptr where it has none.
const Region* find_streams(const Table& table);

}  // namespace backstay::format
