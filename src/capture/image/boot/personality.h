// The personality of the program's threads (personality(2)): with it a program asks for addresses
// that are not random, or for memory that can be executed wherever it can be read. Threads take it
// from the one that makes them. An image has that of the first thread; a restart gives it to all.
#pragma once

#include "capture/image/boot/tables.h"

namespace backstay::image::personality {

// The calling thread's own.
uint64_t own();
// The line of the image's notes; none where it is the usual one.
void add_note(Text& notes);
// A restart: learns it from the image; then each thread takes it.
void learn(const Tables& tables);
void take();

}  // namespace backstay::image::personality
