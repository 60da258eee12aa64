// Fortran hands communicators over as integers; only a program compiled against the MPI at hand
// can turn them into MPI_Comm.
#include "backstay/backstay_mpi.h"

extern "C" int backstay_init_mpi_f(MPI_Fint comm, const char* config) {
  return backstay_init_mpi(MPI_Comm_f2c(comm), config);
}
