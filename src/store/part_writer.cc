#include "store/part_writer.h"

#include <cstring>

#include "base/at_once.h"
#include "base/check.h"
#include "base/clock.h"
#include "format/names.h"
#include "format/segment.h"
#include "store/needed_files.h"
#include "store/needed_segment.h"

namespace backstay::store {

PartWriter::PartWriter(tier::Tier& tier, std::string job, const VersionInfo& info)
    : tier_(tier),
      job_(std::move(job)),
      info_(info),
      file_(tier, job_, {info.version, info.run, info.node}, "commit"),
      next_offset_(format::segment_header_bytes) {}

Status PartWriter::open(std::uint64_t bytes) {
  BACKSTAY_TRY(file_.open(bytes + format::segment_header_bytes));
  header_ = {job_, info_.node, info_.version, info_.run, system_clock().wall_ns()};
  file_.write_header(header_);
  return {};
}

void PartWriter::write(const NewChunk& chunk, std::uint64_t tag) {
  const std::uint64_t slot = format::slot_bytes(chunk.length);
  BACKSTAY_CHECK(slot <= chunk.memory.size());
  std::memset(chunk.memory.data() + chunk.length, 0, slot - chunk.length);
  chunks_.push_back(
      {chunk.object, chunk.length, chunk.object_offset, next_offset_, chunk.checksum});
  file_.write(next_offset_, chunk.memory.first(slot), tag);
  next_offset_ += slot;
}

std::vector<tier::Done> PartWriter::reap(bool wait) {
  auto all = file_.reap(wait);
  for (const tier::Done& done : all) {
    if (!done.status.ok() && !error_) error_ = done.status.error();
  }
  if (!file_.header().ok() && !error_) error_ = file_.header().error();
  return all;
}

Result<FinishedPart> PartWriter::finish(PartEnd& end) {
  BACKSTAY_TRY(file_.seal(next_offset_));
  return publish(end);
}

Result<FinishedPart> PartWriter::finish_written(PartEnd& end,
                                                std::vector<format::ChunkEntry> chunks,
                                                std::uint64_t segment_bytes) {
  BACKSTAY_TRY(tier_.open(file_.names().data));
  chunks_ = std::move(chunks);
  next_offset_ = segment_bytes;
  return publish(end);
}

Result<FinishedPart> PartWriter::publish(PartEnd& end) {
  BACKSTAY_ASSIGN(format::Manifest made, make_manifest(end));
  const auto manifest = std::make_shared<const format::Manifest>(std::move(made));
  for (const FileOf& file : needed_files(*manifest)) BACKSTAY_TRY(open_needed(tier_, job_, file));
  const Buffer encoded = format::encode(*manifest);
  BACKSTAY_TRY(file_.publish(encoded));
  format::CommitRecord record = format::record_of(*manifest, encoded);
  record.needs = format::both_needs(record.needs, end.may_need);
  return FinishedPart{std::move(record), manifest, header_};
}

Result<format::Manifest> PartWriter::make_manifest(PartEnd& end) {
  format::Manifest manifest;
  manifest.job = job_;
  manifest.node = info_.node;
  manifest.version = end.version;
  manifest.run = info_.run;
  manifest.segment_bytes = next_offset_;
  manifest.nodes = info_.nodes;
  manifest.ranks = info_.ranks;
  manifest.chunk_bytes_max = info_.chunk_bytes_max;
  manifest.captured_ns = end.captured_ns;
  manifest.chunks = std::move(chunks_);
  manifest.needs = std::move(end.older.needs);
  manifest.chunks.insert(manifest.chunks.end(), end.older.chunks.begin(), end.older.chunks.end());
  BACKSTAY_TRY(format::index_objects(manifest, end.object_bytes));
  return manifest;
}

// Copies of other nodes' parts may lie there, too, and their owners count on them.
Status PartWriter::remove() {
  file_.close();
  const FileNames& names = file_.names();
  if (info_.nodes == 1) return tier_.remove(names.folder);
  BACKSTAY_TRY(tier_.remove(names.manifest));
  BACKSTAY_TRY(tier_.remove(names.data));
  return tier_.remove_if_empty(names.folder);
}

void finish_at_once(std::vector<Finishing>& parts) {
  Pieces pieces;
  for (Finishing& one : parts) {
    pieces.emplace_back([&] { one.finished = one.part->finish(*one.end); });
  }
  run_at_once(pieces);
}

}  // namespace backstay::store
