// Standard output and error that the program was given by its parent, a process of Backstay. The
// program may have them under any numbers: a shell gives it `2>&1`, `3>&1`, or the two the other
// way round. A restart gives the program those of the new process, and opens no file of them by its
// name. One thread at a time.
#pragma once

#include "capture/image/boot/files.h"
#include "capture/image/boot/tables.h"

namespace backstay::image::outputs {

inline constexpr uint32_t numbers = 3;  // standard input, output and error

// In a cut: once for all descriptors, then for each. Marks what is one of the parent's, and what
// the program has put in their place itself (freopen; `exec > log`).
void look_at_parent();
void mark(const FileStatus& status, Descriptor& one);

// The rest is for a restart.
// Only with a companion: by hand, files are opened again by their names.
extern bool keeps [[gnu::visibility("hidden")]];
// The number under which the new process was given what this descriptor is to be; -1: it was not
// given.
int given(const Descriptor& one);
// Copies 0, 1 and 2 of the new process to numbers from `above` on, so that the image's numbers can
// be filled in any order; until close_all(). -1: it has none.
void lift(long (&lifted)[numbers], long above);
// What was given for this descriptor; the caller moves it to its number. Cuts standard output back,
// where it is the file of before and was not emptied since then (a shell does that for `> file`):
// the program prints the rest again. Standard error stays whole, as `backstay run` has written
// there too. Negative: an error.
long open(const Descriptor& one);
void close_all();

}  // namespace backstay::image::outputs
