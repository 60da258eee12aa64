// The process id that event loops of Python's asyncio remember. Up to Python 3.11 a loop that runs
// is taken for that of another process where getpid() answers otherwise than at its start, as it
// does after a restart. So the pointer to getpid in asyncio's library, and no other one, leads to a
// door then, which answers with the id that the loops know. A child of the process gets its own.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image::asyncio {

// A cut begins: nothing is known.
void begin();
// Of a program that has an epoll set, while its threads stand. Trouble: its getpid is another one.
void find(Trouble& trouble);
// The line of the image's notes, where a restart has something to do.
void add_note(Text& notes);

// A restart, when memory is filled and may be written.
void bring_back(const Tables& tables);
// What the door answers.
int answer();

}  // namespace backstay::image::asyncio
