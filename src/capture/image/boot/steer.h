// Memory of the lower half: its own range, in which its ld.so and libc map whatever they map
// (docs/protocol/lower-half.md, "Memory"). Any thread, with any FS base.
#pragma once

#include "capture/image/boot/elf.h"

namespace backstay::image::steer {

// Maps so many bytes at the next free place. Returns what mmap does.
long map(uint64_t bytes, int protection, int flags, long fd = -1, uint64_t offset = 0);
// Takes a place that was named. Of an ELF file that map_elf() puts there.
uint64_t take_place(uint64_t bytes);

// Changes the calls of a mapped ELF file; of a library, all of [start, end) that is code.
// Returns null, or the name of a call that is not there. ld.so has mmap alone.
const char* change_calls(uint64_t start, uint64_t end, bool whole_libc);

}  // namespace backstay::image::steer
