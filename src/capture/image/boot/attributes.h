// Attributes of a process and its threads that a program may change: limits, processors, priorities
// (docs/format/image.md, notes of attributes). The program has all others from its parent, a
// process of Backstay, and has those of the new parent after a restart. Rights: rights.h.
#pragma once

#include "capture/image/boot/notes.h"
#include "capture/image/boot/stop.h"

namespace backstay::image::attributes {

// In a cut.
void add_notes(const Stopped& stopped, NotesWriter& notes);

// A restart, by the process's first thread. `missing` gets what is not allowed here: that stays as
// the new parent has it. First limits only rise, as far as the restart needs them.
void take_limits(const Tables& tables, bool at_last, Text& missing);
// The threads', once they have been started.
void take(const Tables& tables, Text& missing);

}  // namespace backstay::image::attributes
