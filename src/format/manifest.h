// Manifest (docs/format/manifest.md): structs <-> bytes, no I/O.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/result.h"
#include "format/commit.h"
#include "format/need.h"
#include "format/object_id.h"

namespace backstay::format {

inline constexpr std::size_t manifest_header_bytes = 192;
inline constexpr std::size_t object_entry_bytes = 32;
inline constexpr std::size_t chunk_entry_bytes = 40;
// What readers take in: chunk entries for 100 million chunks, 400 TB on one node.
inline constexpr std::uint64_t manifest_bytes_max = std::uint64_t{4} << 30;

struct ObjectEntry {
  ObjectId id;
  std::uint64_t bytes = 0;
  std::uint64_t first_chunk = 0;
  std::uint64_t chunk_count = 0;
};

struct ChunkEntry {
  ObjectId object;
  std::uint32_t length = 0;
  std::uint64_t object_offset = 0;
  std::uint64_t segment_offset = 0;
  std::uint64_t checksum = 0;
  std::uint32_t need = 0;  // 0: in this version's segment of this node; n: in one of needs[n - 1]
  NodeId node = 0;         // whose segment of that version; 0 where need is 0

  bool here() const { return need == 0; }
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
  std::vector<Need> needs = {};      // sorted by version; each named by a chunk
  std::vector<ObjectEntry> objects;  // sorted by id
  std::vector<ChunkEntry> chunks;    // sorted by object, then object offset

  // An object, or nullptr. A rank alone means its regions.
  const ObjectEntry* find(const ObjectId& id) const;
  std::span<const ChunkEntry> chunks_of(const ObjectEntry& object) const;
  // Those of which an object is here, of whatever kind; sorted.
  std::vector<Rank> ranks_here() const;
};

// Sorts `chunks`, fills `objects` from them and `object_bytes`, and makes every check that
// decode_manifest makes: objects covered without gap or overlap, slots aligned, inside of the
// segment and apart, each need named. Precondition: all other members are set. An object of 0 bytes
// has no chunk. Errors: internal (what does not fit).
Status index_objects(Manifest& manifest,
                     std::span<const std::pair<ObjectId, std::uint64_t>> object_bytes);
// The same where ranks have regions and there is nothing else.
Status build_index(Manifest& manifest,
                   std::span<const std::pair<Rank, std::uint64_t>> object_bytes);

// Precondition: index_objects or build_index found nothing wrong.
Buffer encode(const Manifest& manifest);
// Errors: format (not ours, or of another format), corrupt (says which check failed).
Result<Manifest> decode_manifest(Bytes bytes);
// The checksum in the last 8 bytes of an encoded manifest.
std::uint64_t manifest_digest(Bytes encoded);

// What the node of this manifest says in its record of level local: its own payload, digest and
// needs. The time of commit is still 0.
CommitRecord record_of(const Manifest& manifest, Bytes encoded);

}  // namespace backstay::format
