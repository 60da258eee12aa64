// What the channel's `attention` asks of the program's thread, before its next call into the real
// MPI.
#include "capture/mpi_library/again.h"
#include "capture/mpi_library/call.h"

namespace backstay::mpi {

// `calls` is raised, so no image is taken of handles that are half renewed. Whoever waits for
// something here lowers it meanwhile.
void attend() {
  if (is_asked_to_renew()) begin_again();
}

}  // namespace backstay::mpi
