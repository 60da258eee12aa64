// Operations of the program.
#pragma once

#include "capture/mpi_library/made.h"

namespace backstay::mpi {

uint64_t renew_operation(const Made* made);

}  // namespace backstay::mpi
