// The lower half's descriptors (docs/protocol/lower-half.md, "Cuts and restarts"): a
// table of inodes by number, which the changed system calls of its libc keep. Any thread, with any
// FS base.
#pragma once

#include "capture/image/boot/text.h"

namespace backstay::image::lower_descriptors {

// Changes the calls of the lower half's libc, whose code is [start, end). Null, or the name of one
// that is not there. Before it has started a thread.
const char* change_calls(uint64_t start, uint64_t end);

void note(uint64_t number);
void forget(uint64_t number);
// A number of which the program has made another descriptor meanwhile is the program's.
bool has(uint64_t number, uint64_t inode);
bool is_noted(int number);

// A launcher hands in open sockets, pipes and the like above standard error. Only MPI uses them,
// if anything does, and `control` is ours.
void note_handed_in(long control);
// The same as a text, for the boot program that replaces this one.
void list(Text& numbers);
void note_list(const char* numbers);

}  // namespace backstay::image::lower_descriptors
