// Variables and functions that Intel MPI's Fortran library (libmpifort.so.12) takes from
// libmpi.so.12 besides MPI's own. MPICH's Fortran library has most of them itself.
#include <stdlib.h>

#include "capture/mpi_library/names.h"

extern "C" {

// Common blocks of mpif.h: the program's own come first.
char mpipriv1_[12];  // MPI_BOTTOM, MPI_IN_PLACE, MPI_STATUS_IGNORE
char mpipriv2_[24];  // MPI_STATUSES_IGNORE, MPI_ERRCODES_IGNORE
char mpiprivc_[2];   // MPI_ARGVS_NULL, MPI_ARGV_NULL
char mpifcmb5_[4];   // MPI_UNWEIGHTED
char mpifcmb9_[4];   // MPI_WEIGHTS_EMPTY
char mpifcmba_[4];   // MPI_BUFFER_AUTOMATIC

// The addresses by which it knows them in a call.
void *MPIR_F_MPI_BOTTOM, *MPIR_F_MPI_IN_PLACE, *MPIR_F_MPI_BUFFER_AUTOMATIC;
void *MPIR_F_MPI_UNWEIGHTED, *MPIR_F_MPI_WEIGHTS_EMPTY;
void *MPI_F_ARGVS_NULL, *MPI_F_ERRCODES_IGNORE;
extern int *MPI_F_STATUS_IGNORE, *MPI_F_STATUSES_IGNORE;
extern const int MPII_F_TRUE, MPII_F_FALSE;
const int MPII_F_TRUE = 1, MPII_F_FALSE = 0;

// It calls this before its first function.
void mpirinitf_() {
  constexpr int ints_of_status = 5;
  MPIR_F_MPI_BOTTOM = mpipriv1_;
  MPIR_F_MPI_IN_PLACE = mpipriv1_ + sizeof(int);
  MPI_F_STATUS_IGNORE = reinterpret_cast<int*>(mpipriv1_) + 2;
  MPI_F_STATUSES_IGNORE = reinterpret_cast<int*>(mpipriv2_);
  MPI_F_ERRCODES_IGNORE = mpipriv2_ + ints_of_status * sizeof(int);
  MPI_F_ARGVS_NULL = mpiprivc_;
  MPIR_F_MPI_UNWEIGHTED = mpifcmb5_;
  MPIR_F_MPI_WEIGHTS_EMPTY = mpifcmb9_;
  MPIR_F_MPI_BUFFER_AUTOMATIC = mpifcmba_;
}

void* impi_malloc(size_t bytes) { return malloc(bytes); }
void* impi_realloc(void* old, size_t bytes) { return realloc(old, bytes); }
void impi_free(void* old) { free(old); }

int MPII_Comm_get_attr(uint32_t comm, int keyval, void* value, void* flag, int as);
int MPII_Comm_get_attr_fort(uint32_t comm, int keyval, void* value, void* flag, int as) {
  return MPII_Comm_get_attr(comm, keyval, value, flag, as);
}

// A type(MPI_Datatype) is an integer, and so is a handle of this ABI.
void MPII_Op_set_f08(uint32_t /*op*/) {}

// Its own errors have their class alone.
int MPIR_Err_create_code(int, int, const char*, int, int error_class, ...) { return error_class; }
int MPIR_Err_return_comm(void*, const char*, int code) { return code; }

}  // extern "C"
