/* Backstay for MPI programs: link libbackstay_mpich or libbackstay_openmpi (pkg-config
 * backstay-mpich, backstay-openmpi), built for the MPI that the program uses, and libbackstay. */
#ifndef BACKSTAY_BACKSTAY_MPI_H
#define BACKSTAY_BACKSTAY_MPI_H

#include <mpi.h>

#include "backstay/backstay.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Collective over `comm`, after MPI_Init and before MPI_Finalize. The communicator is duplicated
 * and freed by backstay_finalize(), which must be called before MPI_Finalize.
 * `config` and errors: as backstay_init(). */
BACKSTAY_API int backstay_init_mpi(MPI_Comm comm, const char* config);

/* The same for a Fortran communicator handle (an integer, or mpi_f08's comm%MPI_VAL). The Fortran
 * module calls it; a program need not. */
BACKSTAY_API int backstay_init_mpi_f(MPI_Fint comm, const char* config);

#ifdef __cplusplus
}
#endif

#endif
