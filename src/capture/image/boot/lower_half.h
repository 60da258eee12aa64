// Starting the lower half: the program backstay-lower with its own interpreter, on a thread of its
// own, in its own range; and again in each process that an image is brought back into
// (docs/protocol/lower-half.md).
#pragma once

#include "capture/image/boot/options.h"

namespace backstay::image {

// Where `--mpi FOLDER` was given: remembers it, and what the kernel said at the start. Once, before
// the program runs.
void prepare_lower_half(const Options& options, const Start& start);
// The folder; null without one.
const char* lower_folder();
// The real library for which it was started; null: it was not.
const char* lower_library();

// The program's thread is in a call into the real MPI. Read it while that thread is stopped.
bool in_lower_half();
// A thread that it, or MPI, has started. Any thread.
bool is_of_lower_half(long tid);

// Door 5 (doors.h). Blocks until the lower half is ready. Any thread of the program, with enough
// stack for a text.
const char* start_lower_half(const char* library, char** environment);

// A restart, in this order; all by the new process's first thread.
// Behind prepare_lower_half(): keeps this process's environment.
void keep_for_lower_half(const Start& start);
// Whether it can be started for this library. Changes nothing.
void check_lower_half(const char* library, Trouble& trouble);
// The descriptor that the launcher has given to MPI, -1: none; and that it has another number now.
long launcher_descriptor();
void move_launcher_descriptor(long number);
// Starts it.
void restart_lower_half(const char* library, Trouble& trouble);

}  // namespace backstay::image
