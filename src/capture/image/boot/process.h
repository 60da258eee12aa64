// What the kernel knows of a process's layout (prctl), and what a cut needs to know of its start.
#pragma once

#include "capture/image/boot/window.h"
#include "capture/image/format/layout.h"

namespace backstay::image {

// Facts of the start that the kernel does not tell later. Set once, before the program runs.
struct Process {
  Identity layout{};         // code, data, brk_start, stack, arguments, environment, auxv, rseq
  char program[4096] = {};   // as it was found
  char own_file[4096] = {};  // its ELF file, as /proc/PID/exe would say; empty: not known
  uint64_t own_device = 0, own_inode = 0;
  char interpreter[256] = {};
  char image[4096] = {};  // where a cut is written; empty: nowhere
  // Where libc says how its rseq areas lie (set after its start); 0 after a restart, or without
  // them.
  uint64_t rseq_offset_at = 0, rseq_bytes_at = 0;
};
extern Process process [[gnu::visibility("hidden")]];

// Sets code, data, brk, stack, arguments and environment (PR_SET_MM_MAP; needs no privilege).
// Returns what the kernel does.
long set_layout(const Identity& layout, uint64_t* auxv, uint64_t auxv_bytes);

}  // namespace backstay::image
