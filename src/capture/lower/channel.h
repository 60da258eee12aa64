// What the program's MPI library, the boot program and the companion tell each other about cuts and
// restarts: memory at a fixed address of the window, which no image holds
// (docs/protocol/lower-half.md, "Cuts").
//
// The boot program maps it before a program starts, where it was given a lower half; it is all
// zeros then, and again in each process that an image was brought back into.
#pragma once

#include <stdint.h>

namespace backstay::lower {

inline constexpr uint64_t channel_place = 0x3a5ec0000000;
inline constexpr uint64_t channel_bytes_max = 256 << 20;

// Why the library shall look up before its next call into the real MPI: bits of `attention`.
inline constexpr uint32_t attend_cut = 1;    // a cut is under way (docs/protocol/cut.md)
inline constexpr uint32_t attend_renew = 2;  // the process is another one: its handles are stale

struct Channel {
  uint32_t version;
  uint32_t attention;  // set by the boot program's control thread and by the companion
  // How many calls into the real MPI the program's thread is in; more than one: in a callback. The
  // library counts it; whoever has stopped the thread may read it.
  uint32_t calls;
};
static_assert(sizeof(Channel) <= channel_bytes_max);

inline Channel& channel() { return *reinterpret_cast<Channel*>(channel_place); }

}  // namespace backstay::lower
