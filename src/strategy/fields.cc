#include "strategy/fields.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/checksum.h"
#include "format/segment.h"

namespace backstay::strategy {

std::vector<FieldShape> shapes_of(const std::vector<client::Snapshot::Field>& fields) {
  std::vector<FieldShape> shapes;
  for (const auto& field : fields) shapes.push_back({field.bytes, field.zeros});
  return shapes;
}

Result<Bytes> payload_of(const client::Snapshot::Field& field, Buffer& room) {
  const std::uint64_t bytes = field.bytes - field.zeros;
  if (field.place.in_host_memory() || bytes == 0) return Bytes(field.place.data, bytes);
  room.resize(bytes);
  Checksum unused;
  BACKSTAY_TRY(client::copy_in(field.place, 0, room, unused));
  return Bytes(room);
}

std::uint64_t sum_of(Bytes piece, std::uint64_t zeros) {
  static constexpr std::array<std::byte, 64> none{};
  if (zeros == 0) return checksum(piece);
  Checksum sum;
  sum.update(piece);
  for (; zeros > 0; zeros -= std::min<std::uint64_t>(zeros, none.size())) {
    sum.update(Bytes(none).first(std::min<std::uint64_t>(zeros, none.size())));
  }
  return sum.digest();
}

std::vector<Piece> pieces_of(const FieldShape& shape, std::uint32_t piece_bytes) {
  std::vector<Piece> pieces;
  const std::uint64_t payload = shape.bytes - shape.zeros;
  for (std::uint64_t at = 0; at < shape.bytes; at += piece_bytes) {
    const std::uint64_t length = std::min<std::uint64_t>(piece_bytes, shape.bytes - at);
    const std::uint64_t here = std::min(length, payload - std::min(at, payload));
    pieces.push_back(
        {at, static_cast<std::uint32_t>(length), static_cast<std::uint32_t>(length - here)});
  }
  return pieces;
}

std::vector<format::ChunkEntry> chunks_of(Rank rank, const client::Snapshot::Field& field,
                                          Bytes payload, std::uint64_t segment_offset,
                                          std::uint32_t piece_bytes) {
  std::vector<format::ChunkEntry> chunks;
  for (const Piece& piece : pieces_of({field.bytes, field.zeros}, piece_bytes)) {
    const Bytes bytes =
        payload.subspan(std::min<std::uint64_t>(piece.offset, payload.size()))
            .first(std::min<std::uint64_t>(
                piece.length - piece.zeros,
                payload.size() - std::min<std::uint64_t>(piece.offset, payload.size())));
    chunks.push_back({.object = rank,
                      .length = piece.length,
                      .object_offset = field.offset + piece.offset,
                      .segment_offset = segment_offset + piece.offset,
                      .checksum = sum_of(bytes, piece.length - bytes.size())});
  }
  return chunks;
}

std::vector<std::pair<format::ObjectId, std::uint64_t>> object_bytes_of(
    const std::vector<format::ChunkEntry>& chunks) {
  std::map<std::uint64_t, std::pair<format::ObjectId, std::uint64_t>> sums;
  for (const format::ChunkEntry& chunk : chunks) {
    auto& sum = sums[chunk.object.key()];
    sum.first = chunk.object;
    sum.second += chunk.length;
  }
  std::vector<std::pair<format::ObjectId, std::uint64_t>> all;
  for (const auto& [key, sum] : sums) all.push_back(sum);
  return all;
}

Places lay_out(const std::vector<std::vector<std::uint64_t>>& extents, std::uint64_t align) {
  Places places{.offsets = extents, .end = round_up(format::segment_header_bytes, align)};
  for (const auto& member : extents) {
    places.fields = std::max<std::uint64_t>(places.fields, member.size());
  }
  for (std::uint64_t field = 0; field < places.fields; ++field) {
    for (std::size_t member = 0; member < extents.size(); ++member) {
      if (field >= extents[member].size()) continue;
      places.offsets[member][field] = places.end;
      places.end += extents[member][field];
    }
  }
  return places;
}

}  // namespace backstay::strategy
