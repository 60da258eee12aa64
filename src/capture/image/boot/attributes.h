// Attributes of a process and its threads that a program may change: limits, processors, priorities
// and such (docs/format/image.md, notes of attributes). The program has all others from its parent,
// a process of Backstay, and has those of the new parent after a restart. Rights: rights.h.
#pragma once

#include "capture/image/boot/notes.h"
#include "capture/image/boot/stop.h"

namespace backstay::image::attributes {

// In a cut.
void add_notes(const Stopped& stopped, NotesWriter& notes);

// A restart takes limits first as high as it needs them, later as they were.
enum class When { before_all, once_there, at_last };
// By the process's first thread. `now`: the new id of a thread. `missing` gets what is not allowed
// here; what is nearest holds then.
void take(When when, const Tables& tables, uint32_t (*now)(uint32_t before), Text& missing);

// The calling thread, of Backstay in a process of its own, gets what the parent has.
void be_as_parent();

}  // namespace backstay::image::attributes
