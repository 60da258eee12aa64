// Signals that wait for the process or for one of its threads, with what each of them tells (its
// siginfo) and in their order. Only another process can look at them without taking them out: a
// short-lived one that shares this memory, by ptrace.
#pragma once

#include "capture/image/boot/notes.h"

namespace backstay::image::queued_signals {

// In a cut, once it is known which signals wait. Where they cannot be looked at, as ptrace is not
// allowed, those below the real-time signals come back without what they tell, but for timers'.
// Trouble: one of the others waits then.
void add_notes(Tables& tables, NotesWriter& notes, Trouble& trouble);

// A restart, of the process's first thread: queues those of the process.
void bring_back(const Tables& tables);
// Those of the calling thread, which blocks all signals.
void bring_back(const Tables& tables, const Thread& thread);

}  // namespace backstay::image::queued_signals
