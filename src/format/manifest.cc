#include "format/manifest.h"

#include <algorithm>

#include "format/manifest_check.h"

namespace backstay::format {

const ObjectEntry* Manifest::find(const ObjectId& id) const {
  const auto at = std::lower_bound(
      objects.begin(), objects.end(), id,
      [](const ObjectEntry& object, const ObjectId& wanted) { return object.id < wanted; });
  return at != objects.end() && at->id == id ? &*at : nullptr;
}

std::span<const ChunkEntry> Manifest::chunks_of(const ObjectEntry& object) const {
  return std::span(chunks).subspan(object.first_chunk, object.chunk_count);
}

std::vector<Rank> Manifest::ranks_here() const {
  std::vector<Rank> here;
  for (const ObjectEntry& object : objects) {
    if (object.id.owner != OwnerKind::rank) break;  // writers stand behind all ranks
    if (here.empty() || here.back() != object.id.number) here.push_back(object.id.number);
  }
  return here;
}

Status index_objects(Manifest& manifest,
                     std::span<const std::pair<ObjectId, std::uint64_t>> object_bytes) {
  std::sort(manifest.chunks.begin(), manifest.chunks.end(),
            [](const ChunkEntry& a, const ChunkEntry& b) {
              const std::uint64_t of_a = a.object.key(), of_b = b.object.key();
              return of_a != of_b ? of_a < of_b : a.object_offset < b.object_offset;
            });
  manifest.objects.clear();
  for (const auto& [id, bytes] : object_bytes)
    manifest.objects.push_back({.id = id, .bytes = bytes});
  std::ranges::sort(manifest.objects, {}, &ObjectEntry::id);
  std::uint64_t next = 0;
  for (ObjectEntry& object : manifest.objects) {
    object.first_chunk = next;
    while (next < manifest.chunks.size() && manifest.chunks[next].object == object.id) ++next;
    object.chunk_count = next - object.first_chunk;
  }
  const std::string wrong = wrong_with(manifest);
  if (!wrong.empty()) return Error(Code::internal, "manifest would be wrong: " + wrong);
  return {};
}

Status build_index(Manifest& manifest,
                   std::span<const std::pair<Rank, std::uint64_t>> object_bytes) {
  const std::vector<std::pair<ObjectId, std::uint64_t>> regions(object_bytes.begin(),
                                                                object_bytes.end());
  return index_objects(manifest, regions);
}

CommitRecord record_of(const Manifest& manifest, Bytes encoded) {
  CommitRecord record;
  record.job = manifest.job;
  record.level = Level::local;
  record.version = manifest.version;
  record.run = manifest.run;
  record.nodes = manifest.nodes;
  record.ranks = manifest.ranks;
  for (const ObjectEntry& object : manifest.objects) record.payload_bytes += object.bytes;
  record.manifests_sum = manifest_digest(encoded);
  record.captured_ns = manifest.captured_ns;
  record.needs = manifest.needs;
  return record;
}

}  // namespace backstay::format
