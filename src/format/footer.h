// The last 64 bytes of every object, whatever its kind (docs/format/object.md): struct <-> bytes,
// no I/O.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "format/object_id.h"

namespace backstay::format {

inline constexpr std::size_t object_alignment = 64;  // of the table, and of each region
inline constexpr std::size_t object_footer_bytes = 64;

struct Footer {
  std::uint64_t table_offset = 0;
  std::uint64_t table_bytes = 0;
  std::uint64_t table_checksum = 0;
  std::uint32_t records = 0;  // regions and notes, or files
};

// The next multiple of object_alignment at or after `offset`.
constexpr std::uint64_t aligned_in_object(std::uint64_t offset) {
  return (offset + object_alignment - 1) / object_alignment * object_alignment;
}

// Table and footer, to be put at `table_offset`.
Buffer with_footer(ByteWriter table, std::uint64_t table_offset, std::uint32_t records,
                   ObjectKind kind);

// The magic of the footer of a process image (docs/format/image.md), which is not decoded here.
inline constexpr std::string_view image_footer_magic = "BKSTIMG1";
// `last` is the last object_footer_bytes bytes of an object.
bool is_image(Bytes last);

// `last` is the last object_footer_bytes bytes of the object, `kind` what its manifest says.
// Errors: format (not ours, or of another format), corrupt (says what is wrong; another kind, or
// one whose tables this release does not know).
Result<Footer> decode_footer(Bytes last, std::uint64_t object_bytes,
                             ObjectKind kind = ObjectKind::regions);

}  // namespace backstay::format
