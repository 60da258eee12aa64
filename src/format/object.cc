#include "format/object.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "format/layout.h"
#include "format/streams.h"

namespace backstay::format {

namespace {

constexpr std::string_view table_what = "region table";

constexpr std::uint8_t kind_note = 3;
constexpr std::uint8_t flag_global = 1;
constexpr std::uint32_t file_mode_max = 07777;
constexpr std::uint64_t bytes_max = std::numeric_limits<std::uint64_t>::max();

struct TypeInfo {
  std::size_t bytes;
  std::string_view name;
};
constexpr std::array<TypeInfo, 14> types = {{{0, "unknown"},
                                             {1, "byte"},
                                             {1, "int8"},
                                             {2, "int16"},
                                             {4, "int32"},
                                             {8, "int64"},
                                             {1, "uint8"},
                                             {2, "uint16"},
                                             {4, "uint32"},
                                             {8, "uint64"},
                                             {4, "float32"},
                                             {8, "float64"},
                                             {8, "complex64"},
                                             {16, "complex128"}}};

const TypeInfo& info(ElementType type) {
  const auto index = static_cast<std::size_t>(type);
  return types[index < types.size() ? index : 0];
}

// The product of a shape times the element's size; false where it does not fit into 64 bits.
bool product(const std::vector<std::uint64_t>& shape, std::size_t element, std::uint64_t& bytes) {
  bytes = element;
  // A zero anywhere makes the product 0, however large the other factors are.
  if (std::find(shape.begin(), shape.end(), 0U) != shape.end()) {
    bytes = 0;
    return true;
  }
  for (const std::uint64_t count : shape) {
    if (count > bytes_max / bytes) return false;
    bytes *= count;
  }
  return true;
}

// Well-formed UTF-8 without zero bytes: no overlong forms, no surrogates, at most U+10FFFF.
bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead == 0 || (lead >= 0x80 && lead < 0xC2) || lead > 0xF4) return false;
    if (size > text.size() - at) return false;
    for (std::size_t i = 1; i < size; ++i) {
      const auto next = static_cast<unsigned char>(text[at + i]);
      unsigned low = 0x80;
      unsigned high = 0xBF;
      if (i == 1 && lead == 0xE0) low = 0xA0;
      if (i == 1 && lead == 0xED) high = 0x9F;
      if (i == 1 && lead == 0xF0) low = 0x90;
      if (i == 1 && lead == 0xF4) high = 0x8F;
      if (next < low || next > high) return false;
    }
    at += size;
  }
  return true;
}

void put_dims(ByteWriter& out, const std::vector<std::uint64_t>& dims) {
  for (const std::uint64_t count : dims) out.put(count);
}

void put_record(ByteWriter& out, const Region& region) {
  out.put_text(region.name);
  out.put(static_cast<std::uint8_t>(region.kind));
  out.put(static_cast<std::uint8_t>(region.type));
  out.put(static_cast<std::uint8_t>(region.shape.size()));
  out.put(region.global_shape.empty() ? std::uint8_t{0} : flag_global);
  out.put(region.file_mode);
  out.put(region.offset);
  out.put(region.bytes);
  put_dims(out, region.shape);
  put_dims(out, region.global_shape);
  put_dims(out, region.global_offset);
}

void put_note(ByteWriter& out, const Note& note) {
  out.put_text(note.key);
  out.put(kind_note);
  out.put_text(note.text);
}

std::vector<std::uint64_t> get_dims(ByteReader& in, std::size_t dims) {
  std::vector<std::uint64_t> out(dims);
  for (std::uint64_t& count : out) count = in.get<std::uint64_t>();
  return out;
}

Error wrong_record(const Region& region, std::string_view why) {
  return layout::damaged(table_what, "region '" + region.name + "': " + std::string(why));
}

// What follows the name and the kind.
Result<Region> get_region(ByteReader& in, std::string name, std::uint8_t kind) {
  Region region;
  region.name = std::move(name);
  const auto type = in.get<std::uint8_t>();
  const auto dims = in.get<std::uint8_t>();
  const auto flags = in.get<std::uint8_t>();
  region.file_mode = in.get<std::uint32_t>();
  region.offset = in.get<std::uint64_t>();
  region.bytes = in.get<std::uint64_t>();
  if (kind != 1 && kind != 2 && kind != 4) return wrong_record(region, "unknown kind");
  if (dims < 1 || dims > dims_max) return wrong_record(region, "number of dimensions");
  if ((flags & ~flag_global) != 0) return wrong_record(region, "unknown flags");
  region.kind = static_cast<RegionKind>(kind);
  region.type = static_cast<ElementType>(type);
  region.shape = get_dims(in, dims);
  if ((flags & flag_global) != 0) {
    region.global_shape = get_dims(in, dims);
    region.global_offset = get_dims(in, dims);
  }
  if (!in.ok()) return wrong_record(region, "the table ends inside of its record");
  return region;
}

std::string_view wrong_with_kind(const Region& region) {
  const bool is_file = region.kind == RegionKind::file;
  if (!is_file && region.file_mode != 0) return "a mode of what is no file";
  if (region.kind == RegionKind::array) return "";
  if (region.file_mode > file_mode_max) return "permission bits of the file";
  if (!is_file && region.name != streams_region_name) return "streams that are not named so";
  if (region.type != ElementType::byte || region.shape.size() != 1 ||
      !region.global_shape.empty()) {
    return "a file, or streams, and not a plain row of bytes";
  }
  return "";
}

std::string_view wrong_with_place(const Region& region) {
  if (region.global_shape.empty()) return "";
  std::uint64_t global_bytes = 0;
  if (!product(region.global_shape, element_bytes(region.type), global_bytes)) {
    return "the global array is larger than 64 bits can count";
  }
  for (std::size_t i = 0; i < region.shape.size(); ++i) {
    if (region.shape[i] > region.global_shape[i] ||
        region.global_offset[i] > region.global_shape[i] - region.shape[i]) {
      return "the block lies outside of the global array";
    }
  }
  return "";
}

// `expected` is where the payload must begin: the grammar leaves no choice.
Status check_record(const Region& region, std::uint64_t expected, std::uint64_t table_offset) {
  if (element_bytes(region.type) == 0) return wrong_record(region, "unknown element type");
  std::uint64_t bytes = 0;
  if (!product(region.shape, element_bytes(region.type), bytes) || bytes != region.bytes) {
    return wrong_record(region, "its length is not the product of its shape");
  }
  if (region.offset != expected || region.offset > table_offset ||
      region.bytes > table_offset - region.offset) {
    return wrong_record(region, "its payload is not where the previous one ends");
  }
  if (const auto wrong = wrong_with_kind(region); !wrong.empty()) {
    return wrong_record(region, wrong);
  }
  if (const auto wrong = wrong_with_place(region); !wrong.empty()) {
    return wrong_record(region, wrong);
  }
  return {};
}

Status check_unique(const Table& table) {
  std::set<std::pair<RegionKind, std::string_view>> seen;
  for (const Region& region : table.regions) {
    if (!seen.emplace(region.kind, region.name).second) {
      return wrong_record(region, "its name occurs twice");
    }
  }
  std::set<std::string_view> keys;
  for (const Note& note : table.notes) {
    if (!keys.insert(note.key).second) {
      return layout::damaged(table_what, "note '" + note.key + "' occurs twice");
    }
  }
  return {};
}

// `next`: where the payload of a region must begin; moved behind it.
Status get_record(ByteReader& in, Table& table, std::uint64_t& next, std::uint64_t table_offset) {
  std::string name = in.get_text();
  const auto kind = in.get<std::uint8_t>();
  if (!in.ok() || !check_region_name(name).ok()) {
    return layout::damaged(table_what, "a name is not valid");
  }
  if (kind == kind_note) {
    const Note note{std::move(name), in.get_text()};
    if (!in.ok() || !check_region_name(note.text).ok()) {
      return layout::damaged(table_what, "note '" + note.key + "': its text is not valid");
    }
    table.notes.push_back(note);
    return {};
  }
  BACKSTAY_ASSIGN(Region region, get_region(in, std::move(name), kind));
  BACKSTAY_TRY(check_record(region, next, table_offset));
  if (!table.notes.empty()) return wrong_record(region, "it stands behind a note");
  if (region.kind == RegionKind::streams && !table.regions.empty()) {
    return wrong_record(region, "streams that are not the first region");
  }
  next = aligned_in_object(region.offset + region.bytes);
  table.regions.push_back(std::move(region));
  return {};
}

}  // namespace

std::size_t element_bytes(ElementType type) { return info(type).bytes; }
std::string_view element_name(ElementType type) { return info(type).name; }

std::string_view region_kind_name(RegionKind kind) {
  if (kind == RegionKind::streams) return "streams";
  return kind == RegionKind::file ? "file" : "array";
}

Status check_region_name(std::string_view name) {
  if (name.empty()) return Error(Code::invalid, "the name is empty");
  if (name.size() > region_name_max) {
    return Error(Code::too_large,
                 "a name of " + std::to_string(name.size()) + " bytes; at most 200 are allowed");
  }
  if (!is_utf8(name)) return Error(Code::invalid, "the name is not UTF-8 without zero bytes");
  return {};
}

std::uint64_t lay_out(std::vector<Region>& regions) {
  std::uint64_t next = 0;
  for (Region& region : regions) {
    region.offset = next;
    next = aligned_in_object(next + region.bytes);
  }
  return next;
}

std::string_view Table::note(std::string_view key) const {
  for (const Note& note : notes) {
    if (note.key == key) return note.text;
  }
  return "";
}

Buffer encode_tail(const std::vector<Region>& regions, std::uint64_t table_offset,
                   const std::vector<Note>& notes) {
  ByteWriter out;
  for (const Region& region : regions) put_record(out, region);
  for (const Note& note : notes) put_note(out, note);
  return with_footer(std::move(out), table_offset,
                     static_cast<std::uint32_t>(regions.size() + notes.size()),
                     ObjectKind::regions);
}

Result<Table> decode_table(Bytes bytes, const Footer& footer) {
  if (bytes.size() != footer.table_bytes || checksum(bytes) != footer.table_checksum) {
    return layout::damaged(table_what, "checksum does not match");
  }
  Table table;
  ByteReader in(bytes);
  std::uint64_t next = 0;
  // Grows with what is really there: `footer` may come from anywhere.
  for (std::uint32_t i = 0; i < footer.records; ++i) {
    BACKSTAY_TRY(get_record(in, table, next, footer.table_offset));
  }
  if (!in.done()) return layout::damaged(table_what, "is longer than its records");
  if (next != footer.table_offset) {
    return layout::damaged(table_what, "does not begin where the last payload ends");
  }
  if (table.regions.size() > regions_max || table.notes.size() > notes_max) {
    return layout::damaged(table_what, "number of regions or notes");
  }
  BACKSTAY_TRY(check_unique(table));
  return table;
}

}  // namespace backstay::format
