// Communicators: their members, topology, hints, error handler, and a number that orders them.
#pragma once

#include "capture/mpi_library/error_handlers.h"
#include "capture/mpi_library/infos.h"
#include "capture/mpi_library/members.h"
#include "capture/mpi_library/topologies.h"

namespace backstay::mpi {

// The same at all members, and of no other communicator. The first member chooses it: its rank in
// MPI_COMM_WORLD and a count. A duplicate that was made without blocking has its parent's number,
// and how many such ones came before it; so it needs no message.
struct Number {
  uint64_t agreed;
  Kept<uint32_t> duplicates;
};
// <0, 0, >0: one order at all ranks.
int compare(const Number& a, const Number& b);

struct CommunicatorMade : Made {
  Members local;
  Members remote;  // of an inter-communicator
  bool is_inter;
  Topology topology;
  KeyValues given;  // hints with which it was duplicated: Open MPI takes more of these
  KeyValues hints;  // of MPI_Comm_set_info
  ErrorHandler handler;
  Number number;
  uint32_t duplicates;  // made without blocking
};

// Null: no communicator. Those of MPI's start have a descriptor as well.
CommunicatorMade* communicator(abi::Handle<Class::comm> handle);

// Behind the call that made it, at all members.
Made* describe_communicator(uint64_t real);

// All, in an order that is the same at each rank. Collective over MPI_COMM_WORLD.
void renew_communicators();
// What the program changed of the two that MPI itself makes.
void renew_own_communicators();

}  // namespace backstay::mpi
