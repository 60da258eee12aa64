// Manifest and commit record (docs/format/manifest.md): structs <-> bytes, no I/O.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"

namespace backstay::format {

inline constexpr std::size_t manifest_header_bytes = 184;
inline constexpr std::size_t object_entry_bytes = 32;
inline constexpr std::size_t chunk_entry_bytes = 40;
inline constexpr std::size_t commit_record_bytes = 512;
// What readers take in: chunk entries for 100 million chunks, 400 TB on one node.
inline constexpr std::uint64_t manifest_bytes_max = std::uint64_t{4} << 30;

struct ObjectEntry {
  Rank rank = 0;
  std::uint32_t kind = 1;
  std::uint64_t bytes = 0;
  std::uint64_t first_chunk = 0;
  std::uint64_t chunk_count = 0;
};

struct ChunkEntry {
  Rank rank = 0;
  std::uint32_t length = 0;
  std::uint64_t object_offset = 0;
  std::uint64_t segment_offset = 0;
  std::uint64_t checksum = 0;
};

struct Manifest {
  std::string job;
  NodeId node = 0;
  VersionNumber version = 0;
  RunId run = 0;
  std::uint64_t segment_bytes = 0;
  std::uint32_t nodes = 1;
  std::uint32_t ranks = 1;
  std::uint32_t chunk_bytes_max = 0;
  std::uint64_t captured_ns = 0;
  std::vector<ObjectEntry> objects;  // sorted by rank
  std::vector<ChunkEntry> chunks;    // sorted by rank, then object offset

  // The object of a rank, or nullptr.
  const ObjectEntry* find(Rank rank) const;
  std::span<const ChunkEntry> chunks_of(const ObjectEntry& object) const;
};

// Sorts `chunks`, fills `objects` from them and `object_bytes` (by rank), and makes every check
// that decode_manifest makes: objects covered without gap or overlap, slots aligned, inside of
// the segment and apart. Precondition: all other members are set. An object of 0 bytes has no
// chunk. Errors: internal (what does not fit).
Status build_index(Manifest& manifest,
                   std::span<const std::pair<Rank, std::uint64_t>> object_bytes);

Buffer encode(const Manifest& manifest);
// Errors: format (not ours or newer), corrupt (says which check failed).
Result<Manifest> decode_manifest(Bytes bytes);
// The checksum in the last 8 bytes of an encoded manifest.
std::uint64_t manifest_digest(Bytes encoded);

struct CommitRecord {
  std::string job;
  Level level = Level::local;
  VersionNumber version = 0;
  RunId run = 0;
  std::uint32_t nodes = 1;
  std::uint32_t ranks = 1;
  std::uint64_t payload_bytes = 0;
  std::uint64_t manifests_sum = 0;
  std::uint64_t captured_ns = 0;
  std::uint64_t committed_ns = 0;
};

// What the node of this manifest says in its record of level local: its own payload, its own digest. The time of commit
// is still 0.
CommitRecord record_of(const Manifest& manifest, Bytes encoded);

Buffer encode(const CommitRecord& record);
Result<CommitRecord> decode_commit(Bytes bytes);

}  // namespace backstay::format
