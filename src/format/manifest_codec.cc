// Manifests to bytes and back. What must hold of one stands in manifest_check.cc.
#include <cstddef>
#include <limits>

#include "format/layout.h"
#include "format/manifest.h"
#include "format/manifest_check.h"

namespace backstay::format {

namespace {

constexpr layout::Magic manifest_magic = layout::magic("BKSTMAN1");
constexpr std::size_t digest_bytes = sizeof(std::uint64_t);
constexpr std::uint32_t no_object = std::numeric_limits<std::uint32_t>::max();

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
  std::uint32_t needs;
  std::uint32_t zero;
  std::uint64_t checksum;
};
static_assert(sizeof(Header) == manifest_header_bytes && offsetof(Header, objects) == 40 &&
              offsetof(Header, job) == 64 && offsetof(Header, needs) == 176 &&
              offsetof(Header, checksum) == 184);
static_assert(sizeof(Need) == need_bytes);

struct ObjectRecord {
  std::uint32_t number;
  std::uint16_t owner;
  std::uint16_t kind;
  std::uint64_t bytes;
  std::uint64_t first_chunk;
  std::uint64_t chunk_count;
};
static_assert(sizeof(ObjectRecord) == object_entry_bytes);

struct ChunkRecord {
  std::uint32_t object;
  std::uint32_t length;
  std::uint64_t object_offset;
  std::uint64_t segment_offset;
  std::uint64_t checksum;
  std::uint32_t need;
  std::uint32_t node;
};
static_assert(sizeof(ChunkRecord) == chunk_entry_bytes);

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

Header header_of(const Manifest& manifest) {
  Header header{manifest_magic,
                format_number,
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
                static_cast<std::uint32_t>(manifest.needs.size()),
                0,
                0};
  header.checksum = layout::checksum_of(header);
  return header;
}

// Divides instead of multiplying: the counts may be anything.
bool length_fits(const Header& header, std::size_t file_bytes) {
  if (header.needs > needs_max) return false;
  const std::uint64_t fixed = manifest_header_bytes + digest_bytes + header.needs * need_bytes;
  if (file_bytes < fixed) return false;
  std::uint64_t left = file_bytes - fixed;
  if (header.objects > left / object_entry_bytes) return false;
  left -= std::uint64_t{header.objects} * object_entry_bytes;
  return left % chunk_entry_bytes == 0 && left / chunk_entry_bytes == header.chunks;
}

ObjectEntry entry_of(const ObjectRecord& record) {
  const ObjectId id(static_cast<OwnerKind>(record.owner), record.number,
                    static_cast<ObjectKind>(record.kind));
  return {id, record.bytes, record.first_chunk, record.chunk_count};
}

// Precondition: the length fits the header.
Status read_entries(Bytes bytes, const Header& header, Manifest& manifest) {
  std::size_t at = manifest_header_bytes;
  for (std::uint32_t i = 0; i < header.needs; ++i, at += need_bytes) {
    manifest.needs.push_back(layout::read<Need>(bytes, at));
  }
  manifest.objects.reserve(header.objects);
  for (std::uint32_t i = 0; i < header.objects; ++i, at += object_entry_bytes) {
    manifest.objects.push_back(entry_of(layout::read<ObjectRecord>(bytes, at)));
  }
  manifest.chunks.reserve(header.chunks);
  for (std::uint64_t i = 0; i < header.chunks; ++i, at += chunk_entry_bytes) {
    const auto entry = layout::read<ChunkRecord>(bytes, at);
    if (entry.object >= header.objects) return layout::damaged("manifest", "chunks of no object");
    manifest.chunks.push_back({manifest.objects[entry.object].id, entry.length, entry.object_offset,
                               entry.segment_offset, entry.checksum, entry.need, entry.node});
  }
  return {};
}

// The object of each chunk is mostly that of the chunk before, or the next one.
class IndexOf {
 public:
  explicit IndexOf(const Manifest& manifest) : manifest_(manifest) {}
  std::uint32_t operator()(const ObjectId& id) {
    const auto& objects = manifest_.objects;
    if (last_ < objects.size() && objects[last_].id == id) return last_;
    const ObjectEntry* found = manifest_.find(id);
    if (found == nullptr) return no_object;
    last_ = static_cast<std::uint32_t>(found - objects.data());
    return last_;
  }

 private:
  const Manifest& manifest_;
  std::uint32_t last_ = 0;
};

}  // namespace

Buffer encode(const Manifest& manifest) {
  ByteWriter out;
  out.put_bytes(layout::bytes_of(header_of(manifest)));
  for (const Need& need : manifest.needs) out.put_bytes(layout::bytes_of(need));
  for (const ObjectEntry& object : manifest.objects) {
    out.put_bytes(
        layout::bytes_of(ObjectRecord{object.id.number, static_cast<std::uint16_t>(object.id.owner),
                                      static_cast<std::uint16_t>(object.id.kind), object.bytes,
                                      object.first_chunk, object.chunk_count}));
  }
  IndexOf index_of(manifest);
  for (const ChunkEntry& chunk : manifest.chunks) {
    out.put_bytes(layout::bytes_of(ChunkRecord{index_of(chunk.object), chunk.length,
                                               chunk.object_offset, chunk.segment_offset,
                                               chunk.checksum, chunk.need, chunk.node}));
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
  if (header.zero != 0) return layout::damaged(what, "bytes that must be zero are not");
  if (!length_fits(header, bytes.size())) {
    return layout::damaged(what,
                           "its length does not fit its numbers of needs, objects and chunks");
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

}  // namespace backstay::format
