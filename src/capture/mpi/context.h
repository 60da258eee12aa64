// A session's side of MPI: its communicator, and the one file that this rank may have open.
#pragma once

#include <mpi.h>

#include <string>
#include <vector>

#include "client/launcher.h"

namespace backstay::mpi {

struct Context {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<MPI_Request> sends;

  bool is_split = false;  // file_comm has the ranks of file_group, or is MPI_COMM_NULL
  int file_group = -1;
  MPI_Comm file_comm = MPI_COMM_NULL;
  MPI_File file = MPI_FILE_NULL;
  std::string path;
  MPI_Datatype block = MPI_DATATYPE_NULL;  // of which an int counts enough
};

// Its context is a Context.
extern const backstay_transport transport;

}  // namespace backstay::mpi
