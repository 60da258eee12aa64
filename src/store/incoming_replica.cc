#include "store/incoming_replica.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/failpoint.h"
#include "format/names.h"
#include "format/segment.h"
#include "store/catalog.h"
#include "store/needed_files.h"
#include "store/needed_segment.h"
#include "store/part_reader.h"

namespace backstay::store {

// All before a slot's begin is whole slots or unused, so that a cut there, or in the unused space
// before it, divides none.
std::vector<Piece> cut(const format::Manifest& manifest, std::uint64_t piece_bytes_max) {
  std::vector<Piece> slots = {{0, format::segment_header_bytes}};
  for (const format::ChunkEntry& chunk : manifest.chunks) {
    if (!chunk.here()) continue;
    slots.push_back({chunk.segment_offset, format::slot_bytes(chunk.length)});
  }
  std::ranges::sort(slots, {}, &Piece::offset);
  slots.push_back({manifest.segment_bytes, 0});
  std::vector<Piece> pieces;
  std::uint64_t start = 0;
  for (const Piece& slot : slots) {
    while (slot.offset + slot.bytes - start > piece_bytes_max) {
      const std::uint64_t end = std::min(slot.offset, start + piece_bytes_max);
      pieces.push_back({start, end - start});
      start = end;
    }
  }
  if (start < manifest.segment_bytes) pieces.push_back({start, manifest.segment_bytes - start});
  return pieces;
}

HeldFile held_segment(const format::Manifest& manifest) {
  HeldFile held;
  held.file = {manifest.version, manifest.run, manifest.node};
  held.nodes = manifest.nodes;
  held.ranks_of_run = manifest.ranks;
  held.segment_bytes = manifest.segment_bytes;
  held.ranks = manifest.ranks_here();
  held.needs = needed_files(manifest);
  return held;
}

IncomingReplica::IncomingReplica(tier::Tier& tier, std::string job, FileOf file, Buffer manifest)
    : IncomingFile(tier, job, file, "keep"),
      job_(std::move(job)),
      file_(file),
      manifest_bytes_(std::move(manifest)) {}

// --- opening -------------------------------------------------------------------------------------

Result<std::vector<Piece>> IncomingReplica::open(std::uint64_t segment_bytes,
                                                 std::uint64_t piece_bytes_max, bool replace) {
  BACKSTAY_TRY(understand(segment_bytes, piece_bytes_max));
  const StoredVersion stored = look_at(tier_, job_, file_.version);
  if (stored.unreadable) return *stored.unreadable;  // it may be another run's
  if (stored.level != Level::none && stored.record.run != file_.run) {
    return Error(Code::busy, fmt::format("version {} of another run of job {} is there already",
                                         file_.version, job_));
  }
  if (!replace && is_there()) return std::vector<Piece>();
  BACKSTAY_TRY(create(manifest_.segment_bytes));  // what is there of it is not whole
  return cut(manifest_, piece_bytes_max);
}

Status IncomingReplica::understand(std::uint64_t segment_bytes, std::uint64_t piece_bytes_max) {
  BACKSTAY_ASSIGN(manifest_, format::decode_manifest(manifest_bytes_));
  if (manifest_.job != job_ || FileOf{manifest_.version, manifest_.run, manifest_.node} != file_ ||
      manifest_.segment_bytes != segment_bytes) {
    return Error(Code::corrupt, "the manifest belongs to another file");
  }
  held_ = held_segment(manifest_);
  std::erase_if(manifest_.chunks, [](const format::ChunkEntry& chunk) { return !chunk.here(); });
  std::ranges::sort(manifest_.chunks, {}, &format::ChunkEntry::segment_offset);
  for (const format::ChunkEntry& chunk : manifest_.chunks) {
    if (format::slot_bytes(chunk.length) <= piece_bytes_max) continue;
    return Error(Code::config,
                 "its chunks are larger than the buffers here: set pool.buffer_mib "
                 "to the same on all nodes");
  }
  return {};
}

// The owner asked for those copies before this one; one may have failed. A segment alone is what an
// agent that died has left of one: the manifest comes last.
Status IncomingReplica::check_needs() {
  for (const FileOf& file : held_.needs) {
    const auto segment = open_needed(tier_, job_, file);
    if (!segment.ok()) {
      return Error(is_damage_or_gone(segment.error().code()) ? Code::again : segment.error().code(),
                   segment.error().message() + " here");
    }
    const auto manifest = tier_.open(names_of(job_, file).manifest);
    if (manifest.ok()) continue;
    return Error(manifest.error().code() == Code::not_found ? Code::again : manifest.error().code(),
                 fmt::format("it needs version {}, whose manifest of node {} is not here",
                             file.version, file.node));
  }
  return {};
}

bool IncomingReplica::is_there() {
  const auto bytes = tier_.get(names_.manifest, manifest_bytes_.size());
  return bytes.ok() && *bytes == manifest_bytes_ && tier_.open(names_.data).ok();
}

// --- writing -------------------------------------------------------------------------------------

void IncomingReplica::write(std::uint64_t offset, Bytes piece, Done done) {
  BACKSTAY_CHECK(is_created());
  if (const Status good = check(offset, piece); !good.ok()) return done(good);
  put_piece(offset, piece, std::move(done));
}

Status IncomingReplica::check(std::uint64_t offset, Bytes piece) {
  if (offset == 0) {
    const auto header = format::decode_segment_header(piece.first(format::segment_header_bytes));
    if (!header.ok()) return header.error();
    if (header->job != job_ || FileOf{header->version, header->run, header->node} != file_) {
      return Error(Code::corrupt, "the segment belongs to another file");
    }
  }
  const auto first =
      std::ranges::lower_bound(manifest_.chunks, offset, {}, &format::ChunkEntry::segment_offset);
  std::size_t good = 0;
  for (auto at = first; at != manifest_.chunks.end(); ++at, ++good) {
    const std::uint64_t begin = at->segment_offset - offset;
    if (begin >= piece.size()) break;
    if (begin + at->length > piece.size()) {
      return Error(Code::internal, "a piece that ends within a chunk");
    }
    BACKSTAY_TRY(check_chunk(*at, piece.subspan(begin, at->length)));
  }
  chunks_good_ += good;
  return {};
}

// --- the end -------------------------------------------------------------------------------------

Status IncomingReplica::seal(const std::optional<format::CommitRecord>& record) {
  BACKSTAY_TRY(check_needs());
  if (is_created()) {
    if (chunks_good_ != manifest_.chunks.size()) {
      return Error(Code::internal, "a copy was sealed of which not every chunk was written");
    }
    BACKSTAY_TRY(seal_data(manifest_.segment_bytes));
    BACKSTAY_TRY(publish(manifest_bytes_));
  }
  // The folder may have been removed: put() would have made it again, without the segment.
  if (const auto found = tier_.open(names_.data); !found.ok()) {
    return Error(Code::again, "what was just kept is gone: " + found.error().message());
  }
  if (record) BACKSTAY_TRY(put_record(*record));
  failpoint("keep.4");
  BACKSTAY_TRY(tier_.sync(names_.folder));  // also what an agent that died has left here
  failpoint("keep.5");
  return {};
}

Status IncomingReplica::put_record(const format::CommitRecord& record) {
  const StoredVersion stored = look_at(tier_, job_, file_.version);
  if (stored.unreadable) return *stored.unreadable;
  if (stored.level != Level::none || !stored.damage.empty()) return {};
  return tier_.put(format::commit_name(names_.folder, record.level), format::encode(record));
}

}  // namespace backstay::store
