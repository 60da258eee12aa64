// The process id that event loops of Python's asyncio remember. Up to Python 3.11 a running loop is
// taken for another process's if getpid() gives another id than at its start, as it does after a
// restart. So a restart makes the pointer to getpid in asyncio's library, and no other one, lead to
// a door, which answers with the id that the loops know. A child of the process gets its own id.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image::asyncio {

// A cut begins: nothing is known.
void begin();
// Of a program that has an epoll set, while its threads stand. Trouble: its getpid is not known.
void find(Trouble& trouble);
// The line of the image's notes, where a restart has something to do.
void add_note(Text& notes);

// A restart, when memory is filled and may be written.
void bring_back(const Tables& tables);
// What the door answers.
int answer();

}  // namespace backstay::image::asyncio
