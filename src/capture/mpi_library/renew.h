// Making all handles of the program again, in another MPI than the one that gave them
// (docs/protocol/lower-half.md, "Handles after a restart").
#pragma once

namespace backstay::mpi {

// All ranks of MPI_COMM_WORLD call it, behind MPI_Init and learn_objects(), in a call that has read
// no real handle yet. Slots and
// their numbers stay; each has its real handle of this MPI then. The process ends with a sentence
// where MPI refuses one: without it the program cannot go on.
void renew_handles();

// Why a restart could not bring the program's handles back; null: it can. A sentence's end, as in
// "cannot be saved now, because an MPI window is open".
const char* why_not_renewable();

// Ends the process if MPI has not returned success, and says what could not be made again.
void must(int code, const char* what);

}  // namespace backstay::mpi
