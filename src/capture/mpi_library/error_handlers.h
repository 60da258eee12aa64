// Error handlers of the program, and which one a communicator has.
#pragma once

#include "capture/mpi_library/abi.h"
#include "capture/mpi_library/made.h"

namespace backstay::mpi {

using ErrorHandler = Reference<Class::errhandler>;

// That of a real communicator, which its descriptor then uses.
ErrorHandler handler_of(uint64_t real_comm);

// Of one that MPI gave: a reference to one of the program's, which this library has already.
Made* describe_error_handler(uint64_t real);
uint64_t renew_error_handler(const Made* made);
// Whether one is alive that only MPI knows: of a window or file whose handler the program had
// freed.
bool is_an_error_handler_unknown();

}  // namespace backstay::mpi
