// What the channel's `attention` asks of the program's thread, before its next call into the real
// MPI.
#include "capture/mpi_library/again.h"
#include "capture/mpi_library/call.h"

namespace backstay::mpi {

void attend() {
  const uint32_t asked = __atomic_load_n(&lower::channel().attention, __ATOMIC_ACQUIRE);
  if ((asked & lower::attend_renew) != 0) begin_again();
}

}  // namespace backstay::mpi
