#include "capture/image/boot/tables.h"

#define XXH_INLINE_ALL
#define XXH_NO_STREAM
#include <xxhash.h>

namespace backstay::image {

namespace {

constexpr uint64_t texts_room = 16 << 20;
constexpr uint64_t contents_room = 64 << 20;

uint64_t padded(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

template <typename T>
uint8_t* put(uint8_t* out, Section kind, const T* records, uint64_t count) {
  const SectionHeader header{static_cast<uint32_t>(kind), sizeof(T), count};
  memcpy(out, &header, sizeof header);
  memcpy(out + sizeof header, records, count * sizeof(T));
  return out + sizeof header + padded(count * sizeof(T));  // the arena's memory is zeros
}

template <typename T>
uint8_t* put(uint8_t* out, Section kind, const Row<T>& row) {
  return put(out, kind, row.begin(), row.size());
}

template <typename T>
uint64_t section_bytes(const Row<T>& row) {
  return sizeof(SectionHeader) + padded(row.size() * sizeof(T));
}

template <typename T>
bool get(uint8_t*& in, const uint8_t* end, Section kind, Row<T>& row) {
  SectionHeader header{};
  if (static_cast<uint64_t>(end - in) < sizeof header) return false;
  memcpy(&header, in, sizeof header);
  in += sizeof header;
  if (header.kind != static_cast<uint32_t>(kind) || header.record_bytes != sizeof(T) ||
      header.count > static_cast<uint64_t>(end - in) / sizeof(T)) {
    return false;
  }
  row.adopt(reinterpret_cast<T*>(in), header.count);
  in += padded(header.count * sizeof(T));
  return in <= end;
}

uint64_t footer_checksum(const Footer& footer) {
  return checksum_of(&footer, sizeof footer - sizeof footer.checksum);
}

}  // namespace

uint64_t checksum_of(const void* bytes, uint64_t size) { return XXH3_64bits(bytes, size); }

void Tables::begin() {
  areas.begin(65536);
  runs.begin(4 << 20);
  files.begin(8192);
  threads.begin(4096);
  format = format_whole;
  handlers.begin(signals);
  timers.begin(65536);
  descriptors.begin(descriptors_max);
  contents.begin(contents_room);
  texts.begin(texts_room);
}

uint32_t Tables::add_text(const char* text) {
  const uint64_t offset = texts.size();
  const size_t bytes = strlen(text) + 1;
  if (offset + bytes > texts.room()) give_up(Text() << "the image's texts do not fit", 78);
  texts.resize(offset + bytes);
  memcpy(&texts[offset], text, bytes);
  return static_cast<uint32_t>(offset);
}

uint64_t encode(const Tables& tables, uint64_t table_offset, uint8_t** bytes) {
  const uint64_t room = sizeof(SectionHeader) + padded(sizeof(Identity)) +
                        section_bytes(tables.areas) + section_bytes(tables.runs) +
                        section_bytes(tables.files) + section_bytes(tables.threads) +
                        section_bytes(tables.handlers) + section_bytes(tables.timers) +
                        section_bytes(tables.descriptors) + section_bytes(tables.contents) +
                        section_bytes(tables.texts) + sizeof(Footer);
  auto* begin = static_cast<uint8_t*>(arena::take(room));
  uint8_t* out = put(begin, Section::identity, &tables.identity, 1);
  out = put(out, Section::areas, tables.areas);
  out = put(out, Section::runs, tables.runs);
  out = put(out, Section::files, tables.files);
  out = put(out, Section::threads, tables.threads);
  out = put(out, Section::handlers, tables.handlers);
  out = put(out, Section::timers, tables.timers);
  out = put(out, Section::descriptors, tables.descriptors);
  out = put(out, Section::contents, tables.contents);
  out = put(out, Section::texts, tables.texts);
  const auto table_bytes = static_cast<uint64_t>(out - begin);
  Footer footer{{}, tables.format, sections_count, table_offset, table_bytes, 0, page_bytes, 0, 0};
  memcpy(footer.magic, image_magic, sizeof footer.magic);
  footer.table_checksum = checksum_of(begin, table_bytes);
  footer.checksum = footer_checksum(footer);
  memcpy(out, &footer, sizeof footer);
  *bytes = begin;
  return table_bytes + sizeof footer;
}

void check_footer(const Footer& footer, uint64_t object_bytes, Trouble& trouble) {
  const uint64_t end = object_bytes - sizeof footer;
  if (object_bytes < sizeof footer || memcmp(footer.magic, image_magic, 8) != 0) {
    trouble << "this is no image of a process";
  } else if (footer.format != format_whole && footer.format != format_kept) {
    trouble << "the image has format " << uint64_t{footer.format} << "; this release reads 1 and 2";
  } else if (footer.checksum != footer_checksum(footer) || footer.page_bytes != page_bytes ||
             footer.table_offset % page_bytes != 0 || footer.table_offset > end ||
             footer.table_bytes != end - footer.table_offset) {
    trouble << "the image is damaged: its footer";
  }
}

void decode(const Footer& footer, uint8_t* table, Tables& tables, Trouble& trouble) {
  uint8_t* in = table;
  const uint8_t* end = table + footer.table_bytes;
  Row<Identity> identity;
  const bool good =
      checksum_of(table, footer.table_bytes) == footer.table_checksum &&
      get(in, end, Section::identity, identity) && get(in, end, Section::areas, tables.areas) &&
      get(in, end, Section::runs, tables.runs) && get(in, end, Section::files, tables.files) &&
      get(in, end, Section::threads, tables.threads) &&
      get(in, end, Section::handlers, tables.handlers) &&
      get(in, end, Section::timers, tables.timers) &&
      get(in, end, Section::descriptors, tables.descriptors) &&
      get(in, end, Section::contents, tables.contents) &&
      get(in, end, Section::texts, tables.texts) && in == end;
  if (!good || identity.size() != 1 || tables.threads.size() == 0 ||
      tables.handlers.size() != signals || tables.texts.size() == 0) {
    trouble << "the image is damaged: its table";
    return;
  }
  tables.identity = identity[0];
  tables.format = footer.format;
  tables.pages_end = footer.table_offset;
}

}  // namespace backstay::image
