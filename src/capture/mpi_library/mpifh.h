// Our libmpi_mpifh.so.40 stands before Open MPI's stock library of that name, which it brings
// along: it has the few functions that read or write inside of Open MPI's structs there, made of
// C's. All others are the stock library's (docs/protocol/lower-half.md, "Fortran").
#pragma once

#include <stdint.h>
#include <stdlib.h>

// Each name that Open MPI's library has for a function, as weak as there.
#define BACKSTAY_MPIFH_NAME(ours, name) \
  extern decltype(ours) name __attribute__((weak, alias(#ours)));
#define BACKSTAY_MPIFH_NAMES(name, NAME, Name)           \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, mpi_##name)       \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, mpi_##name##_)    \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, mpi_##name##__)   \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, MPI_##NAME)       \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, MPI_##Name##_f)   \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, MPI_##Name##_f08) \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, pmpi_##name)      \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, pmpi_##name##_)   \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, pmpi_##name##__)  \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, PMPI_##NAME)      \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, PMPI_##Name##_f)  \
  BACKSTAY_MPIFH_NAME(ompi_##name##_f, PMPI_##Name##_f08)

namespace backstay::mpifh {

using Handle = void*;
// INTEGER and LOGICAL have 4 bytes, a status 6 of them, in C and in Fortran alike.
inline constexpr int status_ints = 6;
inline constexpr int undefined = -32766;
inline constexpr int err_no_mem = 39;

// `ierror` may be left out in mpi_f08.
inline int give(int* ierror, int result) {
  if (ierror != nullptr) *ierror = result;
  return result;
}

}  // namespace backstay::mpifh
