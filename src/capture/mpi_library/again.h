// What MPI knew of the program and has to be told again, in a process that an image was brought
// back into (docs/protocol/lower-half.md, "Cuts and restarts"). The thread of the program that is
// in a call.
#pragma once

namespace backstay::mpi {

// Ends the process where the lower half is not of this build.
void check_build();
// MPI_Init or MPI_Init_thread has returned success, with this level; MPI_Finalize has.
void note_start(int level);
void note_end();
// Whether the calling thread is the one that called MPI_Init.
bool is_main_thread();

// Where `attention` says so: initializes MPI if the program had done that, learns the predefined
// objects and renews the handles. Inside of itself it does nothing. It
// ends the process with a sentence where the new MPI is no place for the program.
void begin_again();
// MPI had ended before this life began: what it says of itself is what it said then.
bool has_ended_before();
bool has_ended_here();  // in this one

// MPI_Wtime of the program, by that of the real MPI, which may begin anew in each life. Behind a
// restart it goes on by the wall clock, and never from less than what it has told. In a call.
double program_time(double real);

void learn_objects();  // objects_*.cc

}  // namespace backstay::mpi
