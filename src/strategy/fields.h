// Objects by field, as ranks write them together (paper 004, section III-B: data blocks are sorted
// in the order of fields). A field of a rank is cut into chunks that lie behind each other in the
// file.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "client/snapshot.h"
#include "format/manifest.h"

namespace backstay::strategy {

// A field as other ranks know it.
struct FieldShape {
  std::uint64_t bytes = 0;
  std::uint64_t zeros = 0;  // of these bytes, at the end
};
std::vector<FieldShape> shapes_of(const std::vector<client::Snapshot::Field>& fields);

// A piece of a field becomes a chunk.
struct Piece {
  std::uint64_t offset = 0;  // in the field
  std::uint32_t length = 0;
  std::uint32_t zeros = 0;  // of it, at the end
};
std::vector<Piece> pieces_of(const FieldShape& shape, std::uint32_t piece_bytes);

// The field's bytes without its zeros; copied into `room` where they are a GPU's. Errors: io.
Result<Bytes> payload_of(const client::Snapshot::Field& field, Buffer& room);

// The checksum of a piece and the zeros behind it.
std::uint64_t sum_of(Bytes piece, std::uint64_t zeros);

// The chunks of a rank's field whose first byte lies at `segment_offset`, with their checksums.
std::vector<format::ChunkEntry> chunks_of(Rank rank, const client::Snapshot::Field& field,
                                          Bytes payload, std::uint64_t segment_offset,
                                          std::uint32_t piece_bytes);

// Sums of the lengths of each object's chunks.
std::vector<std::pair<format::ObjectId, std::uint64_t>> object_bytes_of(
    const std::vector<format::ChunkEntry>& chunks);

// The places of all members' fields in one file: the first field of every member, then the second,
// and so on. `extents`: bytes by member and field, each a multiple of `align`. Begins behind the
// segment's header.
struct Places {
  std::vector<std::vector<std::uint64_t>> offsets;  // by member and field
  std::uint64_t fields = 0;                         // the most of a member
  std::uint64_t end = 0;
};
Places lay_out(const std::vector<std::vector<std::uint64_t>>& extents, std::uint64_t align);

constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) {
  return (bytes + to - 1) / to * to;
}

}  // namespace backstay::strategy
