// The standard ABI has no exported variables.
#include "capture/mpi_library/names.h"

namespace backstay::mpi {

void learn_objects() {}

uint64_t abi::bytes_of(const Status& status) {
  int64_t bytes = 0;
  inside(index_MPI_Get_elements_x, &status, byte(), &bytes);
  return static_cast<uint64_t>(bytes);
}

}  // namespace backstay::mpi
