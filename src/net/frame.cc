#include "net/frame.h"

#include <algorithm>
#include <string>

namespace backstay::net {

namespace {

struct Limits {
  std::size_t least, most;
  bool numbered;
};

Limits limits_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::ping: return {0, 0, false};
    case FrameKind::message: return {0, message_bytes_max, false};
    case FrameKind::offer: return {8, 8 + offer_header_bytes_max, true};
    case FrameKind::data: return {1, data_bytes_max, true};
    case FrameKind::bulk:
      return {sizeof(BulkToken) + 1, sizeof(BulkToken) + bulk_address_bytes_max, false};
    case FrameKind::fetch:
    case FrameKind::fetch_bulk:
    case FrameKind::refuse:
    case FrameKind::taken: return {0, 0, true};
  }
  return {1, 0, false};  // no length is right for an unknown kind
}

}  // namespace

std::array<std::byte, frame_header_bytes> encode(const FrameHeader& header) {
  std::array<std::byte, frame_header_bytes> bytes{};
  std::memcpy(bytes.data(), &header.length, sizeof header.length);
  bytes[4] = static_cast<std::byte>(header.kind);
  std::memcpy(bytes.data() + 8, &header.offer, sizeof header.offer);
  return bytes;
}

Result<FrameHeader> decode_frame_header(Bytes bytes) {
  ByteReader reader(bytes);
  FrameHeader header;
  header.length = reader.get<std::uint32_t>();
  header.kind = static_cast<FrameKind>(reader.get<std::uint8_t>());
  const Bytes zeros = reader.bytes(3);
  header.offer = reader.get<std::uint64_t>();
  const Limits limits = limits_of(header.kind);
  const bool good = reader.done() && header.length >= limits.least &&
                    header.length <= limits.most && (header.offer != 0) == limits.numbered &&
                    std::ranges::all_of(zeros, [](std::byte one) { return one == std::byte{0}; });
  if (!good)
    return Error(Code::protocol, "it sent a frame that this release does not know (kind " +
                                     std::to_string(static_cast<int>(header.kind)) + ", " +
                                     std::to_string(header.length) + " bytes)");
  return header;
}

Result<OfferBody> decode_offer(Bytes body) {
  ByteReader reader(body);
  OfferBody offer;
  offer.bytes = reader.get<std::uint64_t>();
  offer.header = reader.bytes(reader.left());
  if (!reader.done() || offer.bytes == 0 || offer.bytes > offer_bytes_max ||
      offer.header.size() > offer_header_bytes_max)
    return Error(Code::protocol, "it sent a damaged offer");
  return offer;
}

Result<BulkBody> decode_bulk(Bytes body) {
  ByteReader reader(body);
  BulkBody bulk;
  const Bytes token = reader.bytes(bulk.token.size());
  std::copy(token.begin(), token.end(), bulk.token.begin());
  bulk.address = reader.bytes(reader.left());
  if (!reader.done() || bulk.address.empty())
    return Error(Code::protocol, "it sent a damaged address for bulk data");
  return bulk;
}

}  // namespace backstay::net
