// The hidden communicators: two duplicates of MPI_COMM_WORLD that no program sees. Over the first
// one ranks come together before MPI makes a communicator by a call of theirs alone; over the
// second one MPI makes it (docs/protocol/cut.md, "Calls of some ranks alone").
//
// The first one has slot 0, which no handle of the program has, and no descriptor. Its messages are
// as the program's: counted, and taken in by a cut. No counter and no cut knows of the second
// one's.
#pragma once

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/counters.h"

namespace backstay::mpi {

// Of the messages of one such call: several threads may be in one each, on another communicator or
// with another tag. Every MPI has tags so large.
inline int tag_alone(uint64_t number, int tag) {
  const auto of_number = static_cast<int>(number * 0x9e3779b97f4a7c15 >> 49);
  return (of_number ^ tag ^ tag >> 15) & 0x7fff;
}

// Behind MPI_Init, in each process; collective over MPI_COMM_WORLD. Returns MPI's error.
int make_hidden();
uint64_t real_for_mpi();
inline abi::Handle<Class::comm> hidden() { return abi::handle_of<Class::comm>(&slots[0]); }

}  // namespace backstay::mpi
