#include "store/needed_segment.h"

#include <fmt/format.h>

#include "base/aligned_memory.h"
#include "format/segment.h"
#include "store/held_file.h"

namespace backstay::store {

namespace {

Error named(const FileOf& segment, const Error& why) {
  return Error(
      why.code() == Code::not_found ? Code::corrupt : why.code(),
      fmt::format("it needs version {}, whose segment of node {} {}", segment.version, segment.node,
                  why.code() == Code::not_found ? "is missing" : why.message()));
}

}  // namespace

Status check_header(tier::Reader& reader, const std::string& job, const FileOf& segment) {
  AlignedMemory block(format::segment_header_bytes);
  reader.read(0, block.span(), 0);
  for (const tier::Done& done : reader.reap(true)) BACKSTAY_TRY(done.status);
  BACKSTAY_ASSIGN(const format::SegmentHeader header, format::decode_segment_header(block.span()));
  if (header.job != job || FileOf{header.version, header.run, header.node} != segment) {
    return Error(Code::corrupt, "belongs to another version");
  }
  return {};
}

Result<std::unique_ptr<tier::Reader>> open_needed(tier::Tier& tier, const std::string& job,
                                                  const FileOf& segment) {
  auto reader = tier.open(names_of(job, segment).data);
  if (!reader.ok()) return named(segment, reader.error());
  const Status header = check_header(**reader, job, segment);
  if (!header.ok()) return named(segment, header.error());
  return reader;
}

}  // namespace backstay::store
