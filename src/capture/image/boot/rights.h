// Rights, which the kernel keeps for each thread: ids, capabilities, no_new_privs (docs/format/
// image.md, notes of attributes). After a restart no thread has more of them than at the cut, nor
// has the control thread; else the process ends.
#pragma once

#include "capture/image/boot/notes.h"

namespace backstay::image::rights {

// As a note has them.
struct Rights {
  uint64_t user[4], group[4];  // real, effective, saved, that for files
  uint64_t inheritable, permitted, effective, bounding, ambient, no_new_privs;
  uint64_t securebits, timer_slack, death_signal, dumpable;
};

// Takes what a line of a thread's `status` in /proc says of them.
void read_line(const char* line, Rights& to);
// Asks the kernel for those that it tells the thread itself alone.
void read_own(Rights& to);
// In a cut. Groups of the first thread (0) come first.
void add_groups(const char* line, uint64_t thread, NotesWriter& notes);
// Also those of the control thread and of the parent.
void add_note(uint64_t thread, const Rights& its, NotesWriter& notes);
void add_others(NotesWriter& notes);

// A restart, before anything has changed. Trouble: the program had given up rights, and this
// process may not. `missing`: as attributes::take().
void check(const Tables& tables, Trouble& trouble, Text& missing);
// Gives a pipe or file that a restart made to the program's user, who may open it again by /proc.
void give(long descriptor);
// The calling thread takes those of this thread of the image. After all that needs more.
void take(uint64_t thread);
// A change of ids takes this away, so the first thread does it once all others have their ids.
void become_dumpable();  // or not, as the process was
// The control thread, at the very end: what it had itself. The image is not needed any more: the
// memory of its tables counts among what the program's limits allow.
void take_as_control();

}  // namespace backstay::image::rights
