// Variables that MPICH exports: programs compare with them, or hold copies of them.
#include "capture/mpi_library/names.h"

extern "C" {
// As MPICH has them: addresses that mean something else than an array.
void* MPI_UNWEIGHTED = nullptr;
void* MPI_WEIGHTS_EMPTY = nullptr;
void* MPI_T_PVAR_ALL_HANDLES = nullptr;
}

namespace backstay::mpi {

void learn_objects() {
  struct Variable {
    const char* name;
    void** place;
  };
  static const Variable all[] = {{"MPI_UNWEIGHTED", &MPI_UNWEIGHTED},
                                 {"MPI_WEIGHTS_EMPTY", &MPI_WEIGHTS_EMPTY},
                                 {"MPI_T_PVAR_ALL_HANDLES", &MPI_T_PVAR_ALL_HANDLES}};
  void* const find = reinterpret_cast<void*>(lower::table().find);
  for (const Variable& one : all) {
    const auto found = call_address<uint64_t>(find, one.name);
    if (found != 0) *one.place = *reinterpret_cast<void**>(found);
  }
}

}  // namespace backstay::mpi
