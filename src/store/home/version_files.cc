#include "store/home/version_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "format/extent_map.h"
#include "format/segment.h"
#include "store/catalog.h"

namespace backstay::store {

Result<std::unique_ptr<VersionFiles>> VersionFiles::open(tier::Tier& tier,
                                                         const format::CommitRecord& record,
                                                         NodeId node) {
  BACKSTAY_ASSIGN(format::Manifest manifest, read_manifest(tier, record.job, record, node));
  std::unique_ptr<VersionFiles> files(new VersionFiles(tier, std::move(manifest)));
  BACKSTAY_TRY(files->reader_.open());
  for (const format::ObjectEntry& object : files->manifest_.objects) {
    if (object.id.kind != format::ObjectKind::files) continue;
    BACKSTAY_TRY(files->read_table(object));
  }
  return files;
}

VersionFiles::VersionFiles(tier::Tier& tier, format::Manifest manifest)
    : manifest_(std::move(manifest)),
      reader_({&tier}, manifest_),
      memory_(format::slot_bytes(manifest_.chunk_bytes_max)) {}

Status VersionFiles::read_table(const format::ObjectEntry& object) {
  const std::string name = format::object_name(object.id);
  if (object.bytes < format::object_footer_bytes) {
    return Error(Code::corrupt, name + ": the object is too short to have a footer");
  }
  const std::uint64_t footer_at = object.bytes - format::object_footer_bytes;
  BACKSTAY_ASSIGN(const Buffer last, range(object, footer_at, object.bytes));
  BACKSTAY_ASSIGN(const format::Footer footer,
                  format::decode_footer(last, object.bytes, format::ObjectKind::files));
  BACKSTAY_ASSIGN(const Buffer table,
                  range(object, footer.table_offset, footer.table_offset + footer.table_bytes));
  BACKSTAY_ASSIGN(std::vector<format::CapturedFile> files, format::decode_files(table, footer));
  for (format::CapturedFile& file : files) {
    const auto [at, added] = files_.try_emplace(file.path);
    // Objects come in their order: of equal times the later one counts.
    if (!added && at->second.file.placed_ns > file.placed_ns) continue;
    at->second = {std::move(file), object.id};
  }
  return {};
}

Result<Buffer> VersionFiles::range(const format::ObjectEntry& object, std::uint64_t begin,
                                   std::uint64_t end) {
  Buffer bytes;
  bytes.reserve(end - begin);
  while (begin < end) {
    BACKSTAY_ASSIGN(const format::ChunkEntry* chunk, load(object, begin));
    const std::uint64_t skip = begin - chunk->object_offset;
    const std::uint64_t count = std::min(chunk->length - skip, end - begin);
    const auto part = memory_.span().subspan(skip, count);
    bytes.insert(bytes.end(), part.begin(), part.end());
    begin += count;
  }
  return bytes;
}

Status VersionFiles::read(const Entry& entry, const Use& use) {
  const format::ObjectEntry* object = manifest_.find(entry.object);
  std::vector<format::Extent> pieces = format::ExtentMap(entry.file.extents).extents();
  std::ranges::sort(pieces, {}, &format::Extent::object_offset);
  for (format::Extent piece : pieces) {
    while (piece.bytes > 0) {
      BACKSTAY_ASSIGN(const format::ChunkEntry* chunk, load(*object, piece.object_offset));
      const std::uint64_t skip = piece.object_offset - chunk->object_offset;
      const std::uint64_t count = std::min(chunk->length - skip, piece.bytes);
      BACKSTAY_TRY(use(piece.file_offset, memory_.span().subspan(skip, count)));
      piece.file_offset += count;
      piece.object_offset += count;
      piece.bytes -= count;
    }
  }
  return {};
}

// Chunks cover the object without gap.
Result<const format::ChunkEntry*> VersionFiles::load(const format::ObjectEntry& object,
                                                     std::uint64_t at) {
  const auto chunks = manifest_.chunks_of(object);
  const auto next = std::ranges::upper_bound(chunks, at, {}, &format::ChunkEntry::object_offset);
  const format::ChunkEntry* chunk = &*std::prev(next);
  if (loaded_ == chunk) return chunk;
  loaded_ = nullptr;
  const Status status = reader_.read(*chunk, memory_.span());
  if (!status.ok()) {
    return Error(status.error().code(),
                 fmt::format("version {}: {}", manifest_.version, status.error().message()));
  }
  loaded_ = chunk;
  return chunk;
}

}  // namespace backstay::store
