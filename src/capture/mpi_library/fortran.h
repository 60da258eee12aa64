// Handles as Fortran has them, for functions of Fortran that MPI calls.
#pragma once

#include "capture/mpi_library/abi.h"

namespace backstay::mpi {

// Within a call that is counted.
template <Class Type>
int number_of(abi::Handle<Type> handle);

}  // namespace backstay::mpi
