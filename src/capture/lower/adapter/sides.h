// What one MPI's mpi.h says: one object for each MPI, compiled from its own header
// (adapt.py constants). C, as the headers' C++ parts are not wanted.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// A number that this MPI does not have.
enum { backstay_absent = -0x7fffffff };

// MPICH: a number. Open MPI: the name of the object that it is the address of. Neither: it has
// none.
struct BackstayHandle {
  uint32_t number;
  const char* object;
  int fortran;  // its number for Fortran; backstay_absent: the header does not say
};

struct BackstaySide {
  const char* name;
  const char* library;
  const int* numbers;                    // as constants.txt has them
  const struct BackstayHandle* handles;  // as handles.txt has them
  void* bottom;
  void* in_place;
  void* status_ignore;
  void* statuses_ignore;
  void* errcodes_ignore;
  void* argv_null;
  void* unweighted;     // null: a variable of this name holds it
  void* weights_empty;  // the same
  uint64_t status_bytes;
  // Where a status has its fields, in bytes.
  uint64_t source_at, tag_at, error_at;
};

extern const struct BackstaySide backstay_mpich, backstay_openmpi;

#ifdef __cplusplus
}
#endif
