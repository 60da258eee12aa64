#include "format/footer.h"

#include <cstring>

#include "format/files.h"
#include "format/layout.h"
#include "format/object.h"

namespace backstay::format {

namespace {

constexpr layout::Magic object_magic = layout::magic("BKSTOBJ1");
constexpr std::string_view footer_what = "object footer";

struct FooterRecord {
  layout::Magic magic;
  std::uint32_t format;
  std::uint32_t records;
  std::uint64_t table_offset;
  std::uint64_t table_bytes;
  std::uint64_t table_checksum;
  std::uint32_t kind;
  std::array<std::byte, 12> zeros;
  std::uint64_t checksum;
};
static_assert(sizeof(FooterRecord) == object_footer_bytes && offsetof(FooterRecord, kind) == 40 &&
              offsetof(FooterRecord, checksum) == 56);

// Whether so many entries can have that length: then memory for them may be taken.
bool table_is_likely(ObjectKind kind, std::uint32_t records, std::uint64_t bytes) {
  if (kind == ObjectKind::regions) {
    return records <= regions_max + notes_max && bytes >= records * note_bytes_min &&
           bytes <= records * region_record_bytes_max;
  }
  return records <= files_max && bytes >= records * file_record_bytes_min &&
         (records > 0 || bytes == 0);
}

}  // namespace

Buffer with_footer(ByteWriter table, std::uint64_t table_offset, std::uint32_t records,
                   ObjectKind kind) {
  FooterRecord footer{object_magic,
                      format_number,
                      records,
                      table_offset,
                      table.size(),
                      checksum(table.view()),
                      static_cast<std::uint32_t>(kind),
                      {},
                      0};
  footer.checksum = layout::checksum_of(footer);
  table.put_bytes(layout::bytes_of(footer));
  return table.take();
}

bool is_image(Bytes last) {
  return last.size() == object_footer_bytes &&
         std::memcmp(last.data(), image_footer_magic.data(), image_footer_magic.size()) == 0;
}

Result<Footer> decode_footer(Bytes last, std::uint64_t object_bytes, ObjectKind kind) {
  if (last.size() != object_footer_bytes || object_bytes < object_footer_bytes) {
    return layout::damaged(footer_what, "the object is too short to have one");
  }
  BACKSTAY_ASSIGN(const FooterRecord record,
                  layout::read_record<FooterRecord>(last, object_magic, footer_what));
  if (!layout::all_zero(record.zeros)) {
    return layout::damaged(footer_what, "bytes that must be zero are not");
  }
  if (record.kind != static_cast<std::uint32_t>(kind) || kind > ObjectKind::files) {
    return layout::damaged(footer_what, "is not that of " + std::string(kind_name(kind)));
  }
  const std::uint64_t table_end = object_bytes - object_footer_bytes;
  if (record.table_offset % object_alignment != 0 || record.table_offset > table_end ||
      record.table_bytes != table_end - record.table_offset) {
    return layout::damaged(footer_what, "the table is not between the payloads and the footer");
  }
  if (!table_is_likely(kind, record.records, record.table_bytes)) {
    return layout::damaged(footer_what, "number of entries");
  }
  return Footer{record.table_offset, record.table_bytes, record.table_checksum, record.records};
}

}  // namespace backstay::format
