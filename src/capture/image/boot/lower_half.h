// Starting the lower half: the program backstay-lower with its own interpreter, on a thread of its
// own, in its own range (docs/protocol/lower-half.md).
#pragma once

#include "capture/image/boot/options.h"

namespace backstay::image {

// Where `--mpi FOLDER` was given: remembers it, and what the kernel said at the start. Once, before
// the program runs.
void prepare_lower_half(const char* folder, const Start& start);
// The folder; null without one.
const char* lower_folder();

// The program's thread is in a call into the real MPI. Read it while that thread is stopped.
bool in_lower_half();
// Trouble where it has been started: such a program cannot be saved yet. Any thread.
void refuse_lower_half(Trouble& trouble);

// Door 5 (doors.h). Blocks until the lower half is ready. Any thread of the program, with enough
// stack for a text.
const char* start_lower_half(const char* library, char** environment);

}  // namespace backstay::image
