#include "bin/parts/segments.h"

#include <fmt/format.h>

#include "base/aligned_memory.h"
#include "format/names.h"
#include "format/segment.h"

namespace backstay::bin {

namespace {

std::string name_of(const format::Manifest& manifest, const SegmentId& segment) {
  return format::segment_name(format::version_folder(manifest.job, segment.version), segment.node);
}

Error named(const SegmentId& segment, const Error& why) {
  return Error(
      why.code() == Code::not_found ? Code::corrupt : why.code(),
      fmt::format("it needs version {}, whose segment of node {} {}", segment.version, segment.node,
                  why.code() == Code::not_found ? "is missing" : why.message()));
}

}  // namespace

SegmentId own_segment(const format::Manifest& manifest) {
  return {manifest.version, manifest.run, manifest.node};
}

SegmentId segment_of(const format::Manifest& manifest, const format::ChunkEntry& chunk) {
  if (chunk.here()) return own_segment(manifest);
  const format::Need& need = manifest.needs[chunk.need - 1];
  return {need.version, need.run, chunk.node};
}

Status check_header(tier::Reader& reader, const format::Manifest& manifest,
                    const SegmentId& segment) {
  AlignedMemory block(format::segment_header_bytes);
  reader.read(0, block.span(), 0);
  for (const tier::Done& done : reader.reap(true)) BACKSTAY_TRY(done.status);
  BACKSTAY_ASSIGN(const format::SegmentHeader header, format::decode_segment_header(block.span()));
  if (header.job != manifest.job || SegmentId{header.version, header.run, header.node} != segment) {
    return Error(Code::corrupt, "belongs to another version");
  }
  return {};
}

Result<std::unique_ptr<tier::Reader>> open_needed(tier::Tier& tier,
                                                  const format::Manifest& manifest,
                                                  const SegmentId& segment) {
  auto reader = tier.open(name_of(manifest, segment));
  if (!reader.ok()) return named(segment, reader.error());
  const Status header = check_header(**reader, manifest, segment);
  if (!header.ok()) return named(segment, header.error());
  return reader;
}

Result<Segments> Segments::open(tier::Tier& tier, const format::Manifest& manifest) {
  Segments segments(tier, manifest);
  const SegmentId own = own_segment(manifest);
  BACKSTAY_ASSIGN(segments.open_[own], tier.open(name_of(manifest, own)));
  return segments;
}

Result<tier::Reader*> Segments::of(const format::ChunkEntry& chunk) {
  const SegmentId segment = segment_of(*manifest_, chunk);
  auto at = open_.find(segment);
  if (at == open_.end()) {
    BACKSTAY_ASSIGN(auto reader, open_needed(*tier_, *manifest_, segment));
    at = open_.emplace(segment, std::move(reader)).first;
  }
  return at->second.get();
}

}  // namespace backstay::bin
