// The table of an object of kind regions (docs/format/object.md): structs <-> bytes, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "format/footer.h"

namespace backstay::format {

inline constexpr std::size_t region_name_max = 200;
inline constexpr int dims_max = 8;
inline constexpr std::size_t regions_max = 1'000'000;
inline constexpr std::size_t notes_max = 16;
inline constexpr std::size_t note_text_max = 200;
// A note without its key and text: length of the key, kind, length of the text; a character each.
inline constexpr std::uint64_t note_bytes_min = 2 + 1 + 2 + 1 + 1;
// A record without its name and its dims: name length, kind, type, dims, flags, mode, offset,
// bytes.
inline constexpr std::uint64_t region_record_fixed_bytes = 2 + 1 + 1 + 1 + 1 + 4 + 8 + 8;
inline constexpr std::uint64_t region_record_bytes_max =
    region_record_fixed_bytes + region_name_max + 3 * 8 * dims_max;

// 3 is a note's. All streams of a rank are one region (format/streams.h).
enum class RegionKind : std::uint8_t { array = 1, file = 2, streams = 4 };
std::string_view region_kind_name(RegionKind kind);  // "array", "file", "streams"

enum class ElementType : std::uint8_t {
  byte = 1,
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f32,
  f64,
  c64,
  c128
};
// Bytes of one element; 0 for a number that is no type.
std::size_t element_bytes(ElementType type);
std::string_view element_name(
    ElementType type);  // numpy's name: "int8", "float64", "complex64" ...

// A name as the format allows it: 1 to region_name_max bytes of UTF-8 without zero bytes.
// Errors: invalid, too_large.
Status check_region_name(std::string_view name);

struct Region {
  std::string name;
  RegionKind kind = RegionKind::array;
  ElementType type = ElementType::byte;
  std::uint32_t file_mode = 0;
  std::uint64_t offset = 0;  // of the payload in the object
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> shape;          // 1 .. dims_max entries
  std::vector<std::uint64_t> global_shape;   // empty: not declared
  std::vector<std::uint64_t> global_offset;  // as long as global_shape
};

// What an object says about itself, without a payload.
struct Note {
  std::string key;
  std::string text;
};
inline constexpr std::string_view note_program = "program";
inline constexpr std::string_view note_fresh = "fresh";

struct Table {
  std::vector<Region> regions;
  std::vector<Note> notes;

  std::string_view note(std::string_view key) const;  // "": there is none
};

// Places the payloads one after another, each aligned; fills `offset`. Returns where the table
// begins.
std::uint64_t lay_out(std::vector<Region>& regions);

// Table and footer, to be put at the offset that lay_out returned.
// Precondition: regions were laid out, hold valid names and shapes, and are at most regions_max;
// notes hold valid keys and texts, and are at most notes_max.
Buffer encode_tail(const std::vector<Region>& regions, std::uint64_t table_offset,
                   const std::vector<Note>& notes = {});

// Errors: corrupt (says what is wrong). Every region returned lies inside of the object and is
// consistent with its shape.
Result<Table> decode_table(Bytes table, const Footer& footer);

}  // namespace backstay::format
