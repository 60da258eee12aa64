// Frames: what passes on a connection after the handshake; bytes <-> struct, no I/O
// (docs/protocol/network.md#frames).
#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"
#include "net/bulk.h"

namespace backstay::net {

inline constexpr std::size_t frame_header_bytes = 16;
// A message of the protocols above (64 KiB), with the tag that says which protocol it is of.
inline constexpr std::size_t message_bytes_max = (std::size_t{64} << 10) + 16;
inline constexpr std::size_t offer_header_bytes_max = std::size_t{4} << 10;
inline constexpr std::size_t data_bytes_max = std::size_t{1024} << 10;
inline constexpr std::size_t bulk_address_bytes_max = std::size_t{4} << 10;
inline constexpr std::uint64_t offer_bytes_max = std::uint64_t{1} << 40;

enum class FrameKind : std::uint8_t {
  ping = 1,
  message = 2,
  offer = 3,
  fetch = 4,
  refuse = 5,
  data = 6,
  taken = 7,
  bulk = 8,        // how to send us bulk data another way
  fetch_bulk = 9,  // a fetch that wants it that way
};

struct FrameHeader {
  std::uint32_t length = 0;  // of the body
  FrameKind kind = FrameKind::ping;
  std::uint64_t offer = 0;

  bool operator==(const FrameHeader&) const = default;
};

std::array<std::byte, frame_header_bytes> encode(const FrameHeader& header);

// `bytes` has frame_header_bytes. On success the length is within the limit of the kind, and the
// number is 0 exactly if the kind has none.
// Errors: protocol.
Result<FrameHeader> decode_frame_header(Bytes bytes);

// The body of an offer frame.
struct OfferBody {
  std::uint64_t bytes = 0;  // 1 to offer_bytes_max
  Bytes header;             // a view
};
// Errors: protocol.
Result<OfferBody> decode_offer(Bytes body);

// The body of a bulk frame.
struct BulkBody {
  BulkToken token;
  Bytes address;  // a view
};
// Errors: protocol.
Result<BulkBody> decode_bulk(Bytes body);

}  // namespace backstay::net
