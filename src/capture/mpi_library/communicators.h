// Communicators: their members, topology, hints, error handler, and a number that orders them.
#pragma once

#include "capture/lower/table.h"
#include "capture/mpi_library/error_handlers.h"
#include "capture/mpi_library/infos.h"
#include "capture/mpi_library/members.h"
#include "capture/mpi_library/topologies.h"

namespace backstay::mpi {

struct CommunicatorMade : Made {
  Members local;
  Members remote;  // of an inter-communicator
  bool is_inter;
  Topology topology;
  KeyValues given;  // hints with which it was duplicated: Open MPI takes more of these
  KeyValues hints;  // of MPI_Comm_set_info
  ErrorHandler handler;
  bool is_handler_set;  // by the program
  // The same at all members, and of no other communicator: of its clock, and the order in which a
  // restart makes them. The first member chooses it: its rank in MPI_COMM_WORLD and a count. That
  // of a duplicate that was made without blocking follows from its parent's, as no message may be
  // waited for.
  uint64_t number;
  uint32_t duplicates;  // made without blocking

  bool is_foreign() const { return local.is_foreign || remote.is_foreign; }
  uint64_t real_handler() const {
    const bool is_set = handler.made != nullptr || handler.own != decltype(handler.own){};
    return is_set ? handler.real() : abi::errors_are_fatal();
  }
};

// <0, 0 or >0, by the order of two numbers.
inline int compare(uint64_t a, uint64_t b) { return a < b ? -1 : static_cast<int>(a > b); }

// Null: no communicator. Those of MPI's start have a descriptor as well.
CommunicatorMade* communicator(abi::Handle<Class::comm> handle);

// Behind the call that made it, at all members.
Made* describe_communicator(uint64_t real);
// They have agreed on its number before.
Made* describe_communicator(uint64_t real, uint64_t number);
uint64_t fresh_number();
uint64_t real_handler_of(abi::Handle<Class::comm> handle);
inline bool is_over_mpich() { return abi::is_mpich == (lower::table().adapter == nullptr); }
// MPICH 4.2 and later ask MPI_COMM_SELF's handler for errors of no communicator once it was set,
// and MPI_COMM_WORLD's before. So it may be set only where the program has set it.
bool is_self_asked();
// Errors of no communicator come back to this library, until the handlers that the program has are
// set again.
void let_own_errors_return();
void set_own_handlers_again();

// All, in an order that is the same at each rank. Collective over MPI_COMM_WORLD.
void renew_communicators();
// Gives a real communicator the name, hints and error handler that the descriptor has.
void furnish(const CommunicatorMade& made, uint64_t real);
// The two that MPI itself makes get what the program changed of them.
void renew_own_communicators();

}  // namespace backstay::mpi
