// Variables that MPICH exports: addresses that mean something else than an array. Programs hold
// copies of them, which nothing can be written to. So they are addresses of ours, and a call gets
// MPICH's own in their place.
#include "capture/mpi_library/names.h"

extern "C" {
namespace {
int unweighted, no_weights, all_handles;
}
extern void* const MPI_UNWEIGHTED;
extern void* const MPI_WEIGHTS_EMPTY;
extern void* const MPI_T_PVAR_ALL_HANDLES;
void* const MPI_UNWEIGHTED = &unweighted;
void* const MPI_WEIGHTS_EMPTY = &no_weights;
void* const MPI_T_PVAR_ALL_HANDLES = &all_handles;

// MPICH's Fortran library writes here which addresses stand for no status.
int *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;
int MPIR_F08_MPI_STATUS_IGNORE_OBJ[5], MPIR_F08_MPI_STATUSES_IGNORE_OBJ[5];
void* MPI_F08_STATUS_IGNORE = MPIR_F08_MPI_STATUS_IGNORE_OBJ;
void* MPI_F08_STATUSES_IGNORE = MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
// What its module mpi_f08 passes. It has variables of these names too, which come first.
void *MPIR_C_MPI_UNWEIGHTED, *MPIR_C_MPI_WEIGHTS_EMPTY;
}

namespace backstay::mpi {

namespace {

struct Variable {
  const char* name;
  void* own;
  void* real;
};
Variable variables[] = {{"MPI_UNWEIGHTED", &unweighted, nullptr},
                        {"MPI_WEIGHTS_EMPTY", &no_weights, nullptr},
                        {"MPI_T_PVAR_ALL_HANDLES", &all_handles, nullptr}};

}  // namespace

void* abi::real_address(void* address) {
  for (const Variable& one : variables) {
    if (one.own == address) return one.real;
  }
  return address;
}
void* abi::unweighted() { return variables[0].real; }

void learn_objects() {
  MPIR_C_MPI_UNWEIGHTED = MPI_UNWEIGHTED;
  MPIR_C_MPI_WEIGHTS_EMPTY = MPI_WEIGHTS_EMPTY;
  void* const find = reinterpret_cast<void*>(lower::table().find);
  for (Variable& one : variables) {
    const auto found = call_inside<uint64_t>(find, one.name);
    if (found != 0) one.real = *reinterpret_cast<void**>(found);
  }
}

}  // namespace backstay::mpi
