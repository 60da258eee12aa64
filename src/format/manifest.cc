#include "format/manifest.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "format/layout.h"
#include "format/segment.h"

namespace backstay::format {

namespace {

constexpr layout::Magic manifest_magic = layout::magic("BKSTMAN1");
constexpr layout::Magic commit_magic = layout::magic("BKSTCMT1");
constexpr std::size_t digest_bytes = sizeof(std::uint64_t);
constexpr std::uint32_t kind_regions = 1;

struct Header {
  layout::Magic magic;
  std::uint32_t format;
  std::uint32_t node;
  std::uint64_t version;
  std::uint64_t run;
  std::uint64_t segment_bytes;
  std::uint32_t objects;
  std::uint32_t nodes;
  std::uint64_t chunks;
  std::uint32_t ranks;
  std::uint32_t chunk_bytes_max;
  layout::JobField job;
  std::uint64_t captured_ns;
  std::uint64_t checksum;
};
static_assert(sizeof(Header) == manifest_header_bytes && offsetof(Header, objects) == 40 &&
              offsetof(Header, job) == 64 && offsetof(Header, checksum) == 176);

struct ObjectRecord {
  std::uint32_t rank;
  std::uint32_t kind;
  std::uint64_t bytes;
  std::uint64_t first_chunk;
  std::uint64_t chunk_count;
};
static_assert(sizeof(ObjectRecord) == object_entry_bytes);

struct ChunkRecord {
  std::uint32_t rank;
  std::uint32_t length;
  std::uint64_t object_offset;
  std::uint64_t segment_offset;
  std::uint64_t checksum;
  std::uint64_t zero;
};
static_assert(sizeof(ChunkRecord) == chunk_entry_bytes);

struct Commit {
  layout::Magic magic;
  std::uint32_t format;
  std::uint32_t level;
  std::uint64_t version;
  std::uint64_t run;
  std::uint32_t nodes;
  std::uint32_t ranks;
  std::uint64_t payload_bytes;
  std::uint64_t manifests_sum;
  std::uint64_t captured_ns;
  std::uint64_t committed_ns;
  layout::JobField job;
  std::array<std::byte, 328> zeros;
  std::uint64_t checksum;
};
static_assert(sizeof(Commit) == commit_record_bytes && offsetof(Commit, payload_bytes) == 40 &&
              offsetof(Commit, job) == 72 && offsetof(Commit, zeros) == 176 &&
              offsetof(Commit, checksum) == 504);

std::string of_rank(std::string_view text, Rank rank) {
  return std::string(text) + " of rank " + std::to_string(rank);
}

// The checks below are shared by the writer (build_index) and the reader (decode_manifest): what
// we write we can read. An empty string: nothing is wrong.

std::string wrong_with_run(const Manifest& manifest) {
  if (!check_job_name(manifest.job).ok()) return "no valid job name";
  if (manifest.version == 0) return "version 0";
  if (manifest.node >= manifest.nodes) return "node number beyond the number of nodes";
  if (manifest.segment_bytes < segment_header_bytes ||
      manifest.segment_bytes % segment_alignment != 0) {
    return "length of the segment is not a whole number of slots";
  }
  return {};
}

std::string wrong_with_chunk(const Manifest& manifest, const ChunkEntry& chunk) {
  if (chunk.length == 0 || chunk.length > manifest.chunk_bytes_max) {
    return of_rank("length of a chunk", chunk.rank);
  }
  const std::uint64_t slot = slot_bytes(chunk.length);
  if (chunk.segment_offset % segment_alignment != 0 ||
      chunk.segment_offset < segment_header_bytes || slot > manifest.segment_bytes ||
      chunk.segment_offset > manifest.segment_bytes - slot) {
    return of_rank("a slot outside of the segment, or not aligned,", chunk.rank);
  }
  return {};
}

// The chunks from `next` on must be this object's, one after another. `next` becomes the index
// after the last.
std::string wrong_with_object(const Manifest& manifest, const ObjectEntry& object,
                              std::uint64_t& next) {
  if (object.kind != kind_regions) return of_rank("unknown kind of the object", object.rank);
  if (object.rank >= manifest.ranks)
    return of_rank("the run does not have the object", object.rank);
  if (object.first_chunk != next || object.chunk_count > manifest.chunks.size() - next) {
    return of_rank("range of chunks", object.rank);
  }
  std::uint64_t covered = 0;
  for (const ChunkEntry& chunk : manifest.chunks_of(object)) {
    if (chunk.rank != object.rank || chunk.object_offset != covered) {
      return of_rank("chunks leave a gap or overlap in the object", object.rank);
    }
    if (auto wrong = wrong_with_chunk(manifest, chunk); !wrong.empty()) return wrong;
    if (chunk.length > object.bytes - covered) {
      return of_rank("chunks are longer than the object", object.rank);
    }
    covered += chunk.length;
  }
  if (covered != object.bytes) return of_rank("chunks do not cover the object", object.rank);
  next += object.chunk_count;
  return {};
}

std::string wrong_with_slots(const Manifest& manifest) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> slots;  // begin, end
  slots.reserve(manifest.chunks.size());
  for (const ChunkEntry& chunk : manifest.chunks) {
    slots.emplace_back(chunk.segment_offset, chunk.segment_offset + slot_bytes(chunk.length));
  }
  std::sort(slots.begin(), slots.end());
  for (std::size_t i = 1; i < slots.size(); ++i) {
    if (slots[i].first < slots[i - 1].second) return "two chunks share bytes of the segment";
  }
  return {};
}

std::string wrong_with(const Manifest& manifest) {
  if (auto wrong = wrong_with_run(manifest); !wrong.empty()) return wrong;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < manifest.objects.size(); ++i) {
    const ObjectEntry& object = manifest.objects[i];
    if (i > 0 && manifest.objects[i - 1].rank >= object.rank) {
      return of_rank("a second entry, or one out of order,", object.rank);
    }
    if (auto wrong = wrong_with_object(manifest, object, next); !wrong.empty()) return wrong;
  }
  if (next != manifest.chunks.size()) return "chunks of no object";
  return wrong_with_slots(manifest);
}

Manifest manifest_of(const Header& header) {
  Manifest manifest;
  manifest.node = header.node;
  manifest.version = header.version;
  manifest.run = header.run;
  manifest.segment_bytes = header.segment_bytes;
  manifest.nodes = header.nodes;
  manifest.ranks = header.ranks;
  manifest.chunk_bytes_max = header.chunk_bytes_max;
  manifest.captured_ns = header.captured_ns;
  return manifest;
}

// Divides instead of multiplying: the counts may be anything.
bool length_fits(const Header& header, std::size_t file_bytes) {
  std::uint64_t left = file_bytes - manifest_header_bytes - digest_bytes;
  if (header.objects > left / object_entry_bytes) return false;
  left -= std::uint64_t{header.objects} * object_entry_bytes;
  return left % chunk_entry_bytes == 0 && left / chunk_entry_bytes == header.chunks;
}

Status read_entries(Bytes bytes, const Header& header, Manifest& manifest) {
  std::size_t at = manifest_header_bytes;
  manifest.objects.reserve(header.objects);
  for (std::uint32_t i = 0; i < header.objects; ++i, at += object_entry_bytes) {
    const auto entry = layout::read<ObjectRecord>(bytes, at);
    manifest.objects.push_back(
        {entry.rank, entry.kind, entry.bytes, entry.first_chunk, entry.chunk_count});
  }
  manifest.chunks.reserve(header.chunks);
  for (std::uint64_t i = 0; i < header.chunks; ++i, at += chunk_entry_bytes) {
    const auto entry = layout::read<ChunkRecord>(bytes, at);
    if (entry.zero != 0) return layout::damaged("manifest", "bytes that must be zero are not");
    manifest.chunks.push_back(
        {entry.rank, entry.length, entry.object_offset, entry.segment_offset, entry.checksum});
  }
  return {};
}

}  // namespace

const ObjectEntry* Manifest::find(Rank rank) const {
  const auto at =
      std::lower_bound(objects.begin(), objects.end(), rank,
                       [](const ObjectEntry& object, Rank wanted) { return object.rank < wanted; });
  return at != objects.end() && at->rank == rank ? &*at : nullptr;
}

std::span<const ChunkEntry> Manifest::chunks_of(const ObjectEntry& object) const {
  return std::span(chunks).subspan(object.first_chunk, object.chunk_count);
}

Status build_index(Manifest& manifest,
                   std::span<const std::pair<Rank, std::uint64_t>> object_bytes) {
  std::sort(manifest.chunks.begin(), manifest.chunks.end(),
            [](const ChunkEntry& a, const ChunkEntry& b) {
              return std::pair(a.rank, a.object_offset) < std::pair(b.rank, b.object_offset);
            });
  manifest.objects.clear();
  for (const auto& [rank, bytes] : object_bytes) {
    manifest.objects.push_back({.rank = rank, .bytes = bytes});
  }
  std::sort(manifest.objects.begin(), manifest.objects.end(),
            [](const ObjectEntry& a, const ObjectEntry& b) { return a.rank < b.rank; });
  std::uint64_t next = 0;
  for (ObjectEntry& object : manifest.objects) {
    object.first_chunk = next;
    while (next < manifest.chunks.size() && manifest.chunks[next].rank == object.rank) ++next;
    object.chunk_count = next - object.first_chunk;
  }
  const std::string wrong = wrong_with(manifest);
  if (!wrong.empty()) return Error(Code::internal, "manifest would be wrong: " + wrong);
  return {};
}

Buffer encode(const Manifest& manifest) {
  Header header{manifest_magic,
                layout::format_number,
                manifest.node,
                manifest.version,
                manifest.run,
                manifest.segment_bytes,
                static_cast<std::uint32_t>(manifest.objects.size()),
                manifest.nodes,
                manifest.chunks.size(),
                manifest.ranks,
                manifest.chunk_bytes_max,
                layout::job_field(manifest.job),
                manifest.captured_ns,
                0};
  header.checksum = layout::checksum_of(header);
  ByteWriter out;
  out.put_bytes(layout::bytes_of(header));
  for (const ObjectEntry& object : manifest.objects) {
    out.put_bytes(layout::bytes_of(ObjectRecord{object.rank, object.kind, object.bytes,
                                                object.first_chunk, object.chunk_count}));
  }
  for (const ChunkEntry& chunk : manifest.chunks) {
    out.put_bytes(layout::bytes_of(ChunkRecord{chunk.rank, chunk.length, chunk.object_offset,
                                               chunk.segment_offset, chunk.checksum, 0}));
  }
  out.put(checksum(out.view()));
  return out.take();
}

std::uint64_t manifest_digest(Bytes encoded) {
  if (encoded.size() < digest_bytes) return 0;
  return layout::read<std::uint64_t>(encoded, encoded.size() - digest_bytes);
}

Result<Manifest> decode_manifest(Bytes bytes) {
  constexpr std::string_view what = "manifest";
  BACKSTAY_ASSIGN(const Header header, layout::read_record<Header>(bytes, manifest_magic, what));
  if (bytes.size() < manifest_header_bytes + digest_bytes || !length_fits(header, bytes.size())) {
    return layout::damaged(what, "its length does not fit its number of objects and chunks");
  }
  if (manifest_digest(bytes) != checksum(bytes.first(bytes.size() - digest_bytes))) {
    return layout::damaged(what, "checksum of the entries does not match");
  }
  Manifest manifest = manifest_of(header);
  BACKSTAY_ASSIGN(manifest.job, layout::job_of(header.job, what));
  BACKSTAY_TRY(read_entries(bytes, header, manifest));
  if (const auto wrong = wrong_with(manifest); !wrong.empty()) return layout::damaged(what, wrong);
  return manifest;
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
  return record;
}

Buffer encode(const CommitRecord& record) {
  Commit commit{commit_magic,
                layout::format_number,
                static_cast<std::uint32_t>(record.level),
                record.version,
                record.run,
                record.nodes,
                record.ranks,
                record.payload_bytes,
                record.manifests_sum,
                record.captured_ns,
                record.committed_ns,
                layout::job_field(record.job),
                {},
                0};
  commit.checksum = layout::checksum_of(commit);
  ByteWriter out;
  out.put_bytes(layout::bytes_of(commit));
  return out.take();
}

Result<CommitRecord> decode_commit(Bytes bytes) {
  constexpr std::string_view what = "commit record";
  if (bytes.size() != commit_record_bytes) return layout::damaged(what, "is not 512 bytes long");
  BACKSTAY_ASSIGN(const Commit commit, layout::read_record<Commit>(bytes, commit_magic, what));
  if (commit.level < static_cast<std::uint32_t>(Level::local) ||
      commit.level > static_cast<std::uint32_t>(Level::durable)) {
    return layout::damaged(what, "unknown level");
  }
  if (commit.version == 0 || commit.nodes == 0 || commit.ranks == 0) {
    return layout::damaged(what, "version, nodes or ranks are 0");
  }
  if (!layout::all_zero(commit.zeros)) {
    return layout::damaged(what, "bytes that must be zero are not");
  }
  CommitRecord record;
  BACKSTAY_ASSIGN(record.job, layout::job_of(commit.job, what));
  record.level = static_cast<Level>(commit.level);
  record.version = commit.version;
  record.run = commit.run;
  record.nodes = commit.nodes;
  record.ranks = commit.ranks;
  record.payload_bytes = commit.payload_bytes;
  record.manifests_sum = commit.manifests_sum;
  record.captured_ns = commit.captured_ns;
  record.committed_ns = commit.committed_ns;
  return record;
}

}  // namespace backstay::format
