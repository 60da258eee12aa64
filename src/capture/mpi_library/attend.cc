// What the channel's `attention` asks of the program's thread, before its next call into the real
// MPI.
#include "capture/mpi_library/call.h"

namespace backstay::mpi {

void attend() {}

}  // namespace backstay::mpi
