// An image's table and footer (docs/format/image.md): structs <-> bytes, no I/O.
//
// The static boot program writes the same bytes from the same records; this side is for tools,
// tests and whatever else looks into an image. Any thread; nothing blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "capture/image/format/layout.h"

namespace backstay::image {

inline constexpr std::size_t footer_bytes = sizeof(Footer);
// The most that the boot program's tables hold (boot/tables.cc), with room to spare.
inline constexpr std::uint64_t table_bytes_most = std::uint64_t{224} << 20;

struct Image {
  Identity identity{};
  std::vector<Area> areas;
  std::vector<Run> runs;
  std::vector<File> files;
  std::vector<Thread> threads;
  std::vector<Handler> handlers;
  std::vector<Timer> timers;
  std::vector<Descriptor> descriptors;
  Buffer contents;
  std::string texts;  // each ended by a zero byte

  // The text that begins at an offset. Precondition: a record of a decoded image names it.
  std::string_view text(std::uint32_t offset) const { return texts.c_str() + offset; }
};

// Table and footer, to be put at `table_offset`: the pages' end, a multiple of page_bytes.
Buffer encode_tail(const Image& image, std::uint64_t table_offset,
                   std::uint32_t format = format_whole);

// `last` is the last footer_bytes bytes of the object. Errors: format, corrupt.
Result<Footer> decode_footer(Bytes last, std::uint64_t object_bytes);

// Every run returned lies in the object, and in one area; every text and file named is there.
// Errors: corrupt (says what is wrong).
Result<Image> decode_table(Bytes table, const Footer& footer);

}  // namespace backstay::image
