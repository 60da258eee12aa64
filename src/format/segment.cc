#include "format/segment.h"

#include <cstddef>

#include "format/layout.h"

namespace backstay::format {

namespace {

constexpr layout::Magic segment_magic = layout::magic("BKSTSEG1");
constexpr std::string_view header_name = "segment header";

struct HeaderRecord {
  layout::Magic magic;
  std::uint32_t format;
  std::uint32_t node;
  std::uint64_t version;
  std::uint64_t run;
  std::uint64_t created_ns;
  std::uint32_t alignment;
  std::uint32_t zero;
  layout::JobField job;
  std::uint64_t checksum;
};
static_assert(sizeof(HeaderRecord) == 160 && offsetof(HeaderRecord, alignment) == 40 &&
              offsetof(HeaderRecord, job) == 48 && offsetof(HeaderRecord, checksum) == 152);
static_assert(segment_header_bytes == 4096 && segment_alignment == 4096);

}  // namespace

Buffer encode(const SegmentHeader& header) {
  HeaderRecord record{segment_magic,
                      format_number,
                      header.node,
                      header.version,
                      header.run,
                      header.created_ns,
                      segment_alignment,
                      0,
                      layout::job_field(header.job),
                      0};
  record.checksum = layout::checksum_of(record);
  ByteWriter out;
  out.put_bytes(layout::bytes_of(record));
  out.put_zeros(segment_header_bytes - sizeof record);
  return out.take();
}

Result<SegmentHeader> decode_segment_header(Bytes block) {
  if (block.size() != segment_header_bytes)
    return layout::damaged(header_name, "is not 4096 bytes long");
  BACKSTAY_ASSIGN(const HeaderRecord record,
                  layout::read_record<HeaderRecord>(block, segment_magic, header_name));
  if (record.alignment != segment_alignment)
    return layout::damaged(header_name, "unknown alignment");
  if (record.version == 0) return layout::damaged(header_name, "version 0");
  if (record.zero != 0 || !layout::all_zero(block.subspan(sizeof record))) {
    return layout::damaged(header_name, "bytes that must be zero are not");
  }
  SegmentHeader header;
  BACKSTAY_ASSIGN(header.job, layout::job_of(record.job, header_name));
  header.node = record.node;
  header.version = record.version;
  header.run = record.run;
  header.created_ns = record.created_ns;
  return header;
}

}  // namespace backstay::format
