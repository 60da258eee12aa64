// Attributes and their keyvals. They are this library's own: the real MPI knows of none of them, so
// a restart has nothing to renew, and the program's functions are called without a trampoline.
#pragma once

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/made.h"

namespace backstay::mpi {

// What a duplicate of `handle` gets. Not 0: what a function of the program returned.
template <Class Type>
int copy_attributes(abi::Handle<Type> handle, const Kept<Attribute>& from, Kept<Attribute>& to);
// The last one first, before the object is freed.
template <Class Type>
int delete_attributes(abi::Handle<Type> handle, Kept<Attribute>& all);
// Of MPI_COMM_SELF, then of MPI_COMM_WORLD: MPI_Finalize begins so.
void delete_own_attributes();

// Brings an error to the error handler of an object, as a function of MPI does where it returns it.
template <Class Type>
int raise_error(abi::Handle<Type> handle, int code);

// Values of MPI's own attributes, which the program may have a pointer to.
void renew_own_values();

}  // namespace backstay::mpi
