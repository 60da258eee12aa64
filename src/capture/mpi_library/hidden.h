// The hidden communicator: a duplicate of MPI_COMM_WORLD that no program sees. Over it ranks come
// together before MPI makes a communicator by a call of theirs alone, and MPI itself makes that one
// (docs/protocol/cut.md, "Calls of some ranks alone").
//
// It has slot 0, which no handle of the program has, and no descriptor.
#pragma once

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/counters.h"

namespace backstay::mpi {

// MPI passes messages with this tag over it: no counter and no cut knows of them.
inline constexpr int tag_of_mpi = 0;
// Those of this library are messages as the program's: counted, and taken in by a cut.
inline constexpr int tag_of_ours = 1;

// Behind MPI_Init, in each process; collective over MPI_COMM_WORLD. Returns MPI's error.
int make_hidden();
inline uint64_t real_hidden() { return slots[0].real; }
inline abi::Handle<Class::comm> hidden() { return abi::handle_of<Class::comm>(&slots[0]); }

}  // namespace backstay::mpi
