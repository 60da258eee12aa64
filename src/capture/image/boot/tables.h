// The tables of one image, while it is made or read: rows in the arena.
#pragma once

#include "capture/image/boot/window.h"
#include "capture/image/format/layout.h"

namespace backstay::image {

inline constexpr uint32_t descriptors_max = 65536;

struct Tables {
  Identity identity{};
  Row<Area> areas;
  Row<Run> runs;
  Row<File> files;
  Row<Thread> threads;
  Row<Handler> handlers;
  Row<Timer> timers;
  Row<Descriptor> descriptors;
  Row<uint8_t> contents;
  Row<char> texts;
  uint32_t format = format_whole;
  uint64_t pages_end = 0;  // in the object, of an image that was read

  void begin();  // gives each row its room
  uint32_t add_text(const char* text);
  const char* text(uint32_t offset) const { return &texts[offset]; }
};

// Table and footer as bytes in the arena. Returns how many.
uint64_t encode(const Tables& tables, uint64_t table_offset, uint8_t** bytes);
// Checks footer and table, and gives the rows their places in `table`. Trouble: damaged.
void check_footer(const Footer& footer, uint64_t object_bytes, Trouble& trouble);
void decode(const Footer& footer, uint8_t* table, Tables& tables, Trouble& trouble);

uint64_t checksum_of(const void* bytes, uint64_t size);  // XXH3, as everywhere (docs/format)

}  // namespace backstay::image
