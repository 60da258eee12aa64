#include "capture/mpi_library/hidden.h"

#include "capture/mpi_library/members.h"
#include "capture/mpi_library/names.h"

namespace backstay::mpi {

namespace {

uint64_t for_mpi = 0;

int duplicate_world(uint64_t& real) {
  const int result = inside(index_MPI_Comm_dup, abi::world(), &real);
  if (result != 0) return result;
  // MPI's errors are the caller's, who raises them where the program expects them.
  inside(index_MPI_Comm_set_errhandler, real, abi::errors_return());
  ask_for_group(real);
  return 0;
}

}  // namespace

uint64_t real_for_mpi() { return for_mpi; }

int make_hidden() {
  const int result = duplicate_world(slots[0].real);
  return result != 0 ? result : duplicate_world(for_mpi);
}

}  // namespace backstay::mpi
