#include "agent/disk/part_writer.h"

#include <cstring>

#include "agent/disk/needed_segment.h"
#include "agent/version/needed_files.h"
#include "base/at_once.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "format/names.h"
#include "format/segment.h"

namespace backstay::agent {

namespace {

// The segment header in a block that O_DIRECT accepts.
AlignedMemory header_block(const VersionInfo& info, const std::string& job, std::uint64_t now_ns) {
  const Buffer bytes =
      format::encode(format::SegmentHeader{job, info.node, info.version, info.run, now_ns});
  AlignedMemory block(bytes.size());
  BACKSTAY_CHECK(block.span().size() == format::segment_header_bytes);
  std::memcpy(block.span().data(), bytes.data(), bytes.size());
  return block;
}

constexpr std::uint64_t header_tag = UINT64_MAX;

StoredVersion as_sealed(const format::CommitRecord& record) {
  StoredVersion stored;
  stored.version = record.version;
  stored.record = record;
  stored.in_doubt = record.nodes > 1;
  return stored;
}

}  // namespace

PartWriter::PartWriter(std::string job, const VersionInfo& info)
    : job_(std::move(job)),
      info_(info),
      folder_(format::version_folder(job_, info.version)),
      next_offset_(format::segment_header_bytes) {}

Status PartWriter::open(tier::Tier& tier, std::uint64_t bytes) {
  BACKSTAY_ASSIGN(writer_, tier.create(format::segment_name(folder_, info_.node),
                                       bytes + format::segment_header_bytes));
  header_ = header_block(info_, job_, system_clock().wall_ns());
  writer_->write(0, header_->span(), header_tag);
  return {};
}

void PartWriter::write(const WriteChunk& command) {
  const std::uint64_t slot = format::slot_bytes(command.length);
  BACKSTAY_CHECK(slot <= command.memory.size());
  std::memset(command.memory.data() + command.length, 0, slot - command.length);
  const std::uint64_t tag = next_tag_++;
  buffers_[tag] = {command.buffer, command.length};
  chunks_.push_back(
      {command.object, command.length, command.object_offset, next_offset_, command.checksum});
  writer_->write(next_offset_, command.memory.first(slot), tag);
  next_offset_ += slot;
}

std::vector<ChunkWritten> PartWriter::reap(bool wait) {
  std::vector<ChunkWritten> written;
  for (const tier::Done& done : writer_->reap(wait)) {
    if (!done.status.ok() && !error_) error_ = done.status.error();
    if (done.tag == header_tag) continue;
    const auto [buffer, length] = buffers_.at(done.tag);
    buffers_.erase(done.tag);
    written.push_back({info_.version, buffer, done.status.ok() ? length : 0});
  }
  return written;
}

Result<VersionSealed> PartWriter::finish(tier::Tier& tier, SealVersion& command) {
  failpoint("commit.1");
  BACKSTAY_TRY(writer_->seal(next_offset_));
  failpoint("commit.2");
  BACKSTAY_ASSIGN(format::Manifest made, make_manifest(command));
  const auto shared = std::make_shared<const format::Manifest>(std::move(made));
  const format::Manifest& manifest = *shared;
  const std::vector<FileOf> needs = needed_files(manifest);
  for (const FileOf& file : needs) BACKSTAY_TRY(open_needed(tier, job_, file));
  const Buffer encoded = format::encode(manifest);
  BACKSTAY_TRY(tier.put(format::manifest_name(folder_, manifest.node), encoded));
  failpoint("commit.3");
  format::CommitRecord record = format::record_of(manifest, encoded);
  record.needs = format::both_needs(record.needs, command.may_need);
  return VersionSealed{as_sealed(record),     manifest.node, manifest.segment_bytes,
                       manifest.ranks_here(), needs,         shared};
}

Result<format::Manifest> PartWriter::make_manifest(SealVersion& command) {
  format::Manifest manifest;
  manifest.job = job_;
  manifest.node = info_.node;
  manifest.version = command.version;
  manifest.run = info_.run;
  manifest.segment_bytes = next_offset_;
  manifest.nodes = info_.nodes;
  manifest.ranks = info_.ranks;
  manifest.chunk_bytes_max = info_.chunk_bytes_max;
  manifest.captured_ns = command.captured_ns;
  manifest.chunks = std::move(chunks_);
  manifest.needs = std::move(command.older.needs);
  manifest.chunks.insert(manifest.chunks.end(), command.older.chunks.begin(),
                         command.older.chunks.end());
  BACKSTAY_TRY(format::index_objects(manifest, command.object_bytes));
  return manifest;
}

Status remove_part(tier::Tier& tier, const std::string& folder, const VersionInfo& part) {
  if (part.nodes == 1) return tier.remove(folder);
  BACKSTAY_TRY(tier.remove(format::manifest_name(folder, part.node)));
  BACKSTAY_TRY(tier.remove(format::segment_name(folder, part.node)));
  return tier.remove_if_empty(folder);
}

void finish_at_once(tier::Tier& tier, std::vector<Finishing>& parts) {
  Pieces pieces;
  for (Finishing& one : parts) {
    pieces.emplace_back([&] { one.sealed = one.part->finish(tier, *one.command); });
  }
  run_at_once(pieces);
}

}  // namespace backstay::agent
