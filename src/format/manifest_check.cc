#include "format/manifest_check.h"

#include <algorithm>
#include <limits>

#include "format/segment.h"

namespace backstay::format {

namespace {

std::string of_object(std::string_view text, const ObjectId& id) {
  return std::string(text) + " of " + object_name(id);
}

std::string wrong_with_run(const Manifest& manifest) {
  if (!check_job_name(manifest.job).ok()) return "no valid job name";
  if (manifest.version == 0) return "version 0";
  if (manifest.node >= manifest.nodes) return "node number beyond the number of nodes";
  if (manifest.segment_bytes < segment_header_bytes ||
      manifest.segment_bytes % segment_alignment != 0) {
    return "length of the segment is not a whole number of slots";
  }
  return std::string(wrong_with_needs(manifest.needs, manifest.version));
}

std::string wrong_with_owner(const Manifest& manifest, const ObjectId& id) {
  if (id.kind < ObjectKind::regions || id.kind > ObjectKind::calls) {
    return of_object("unknown kind of the object", id);
  }
  if (id.owner > OwnerKind::writer) return "unknown kind of an object's owner";
  if (id.owner == OwnerKind::rank && id.number >= manifest.ranks) {
    return of_object("the run does not have the object", id);
  }
  if (id.owner == OwnerKind::writer && id.kind == ObjectKind::regions) {
    return "regions of a writer";
  }
  return {};
}

// How far the segment goes in which the chunk lies. That of a needed version is known only to who
// opens it.
std::uint64_t segment_end(const Manifest& manifest, const ChunkEntry& chunk) {
  constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
  return chunk.here() ? manifest.segment_bytes : last / segment_alignment * segment_alignment;
}

std::string wrong_with_chunk(const Manifest& manifest, const ChunkEntry& chunk) {
  if (chunk.length == 0 || chunk.length > manifest.chunk_bytes_max) {
    return of_object("length of a chunk", chunk.object);
  }
  if (chunk.need > manifest.needs.size() || (chunk.here() && chunk.node != 0)) {
    return of_object("a chunk in a version that is not named,", chunk.object);
  }
  const std::uint64_t slot = slot_bytes(chunk.length);
  const std::uint64_t end = segment_end(manifest, chunk);
  if (chunk.segment_offset % segment_alignment != 0 ||
      chunk.segment_offset < segment_header_bytes || slot > end ||
      chunk.segment_offset > end - slot) {
    return of_object("a slot outside of the segment, or not aligned,", chunk.object);
  }
  return {};
}

// The chunks from `next` on must be this object's, one after another. `next` becomes the index
// after the last.
std::string wrong_with_object(const Manifest& manifest, const ObjectEntry& object,
                              std::uint64_t& next) {
  if (auto wrong = wrong_with_owner(manifest, object.id); !wrong.empty()) return wrong;
  if (object.first_chunk != next || object.chunk_count > manifest.chunks.size() - next) {
    return of_object("range of chunks", object.id);
  }
  const std::uint64_t unit = object.id.kind == ObjectKind::image ? segment_alignment : 1;
  std::uint64_t covered = 0;
  for (const ChunkEntry& chunk : manifest.chunks_of(object)) {
    if (chunk.object != object.id || chunk.object_offset != covered) {
      return of_object("chunks leave a gap or overlap in the object", object.id);
    }
    if (covered % unit != 0) return of_object("a chunk that begins within a page", object.id);
    if (auto wrong = wrong_with_chunk(manifest, chunk); !wrong.empty()) return wrong;
    if (chunk.length > object.bytes - covered) {
      return of_object("chunks are longer than the object", object.id);
    }
    covered += chunk.length;
  }
  if (covered != object.bytes) return of_object("chunks do not cover the object", object.id);
  next += object.chunk_count;
  return {};
}

std::string wrong_with_slots(const Manifest& manifest) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> slots;  // begin, end
  slots.reserve(manifest.chunks.size());
  for (const ChunkEntry& chunk : manifest.chunks) {
    if (!chunk.here()) continue;  // several may name the same bytes there
    slots.emplace_back(chunk.segment_offset, chunk.segment_offset + slot_bytes(chunk.length));
  }
  std::sort(slots.begin(), slots.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < slots.size(); ++i) {
    if (slots[i].first < slots[i - 1].second) return "two chunks share bytes of the segment";
  }
  return {};
}

std::string wrong_with_needed(const Manifest& manifest) {
  if (manifest.needs.empty()) return {};
  std::vector<bool> named(manifest.needs.size());
  for (const ChunkEntry& chunk : manifest.chunks) {
    if (!chunk.here()) named[chunk.need - 1] = true;
  }
  const bool all = std::all_of(named.begin(), named.end(), [](bool one) { return one; });
  return all ? "" : "needs a version that no chunk names";
}

}  // namespace

std::string wrong_with(const Manifest& manifest) {
  if (auto wrong = wrong_with_run(manifest); !wrong.empty()) return wrong;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < manifest.objects.size(); ++i) {
    const ObjectEntry& object = manifest.objects[i];
    if (i > 0 && manifest.objects[i - 1].id >= object.id) {
      return of_object("a second entry, or one out of order,", object.id);
    }
    if (auto wrong = wrong_with_object(manifest, object, next); !wrong.empty()) return wrong;
  }
  if (next != manifest.chunks.size()) return "chunks of no object";
  if (auto wrong = wrong_with_slots(manifest); !wrong.empty()) return wrong;
  return wrong_with_needed(manifest);
}

}  // namespace backstay::format
