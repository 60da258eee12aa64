// Messages that the program has matched (MPI_Mprobe) and not received yet, beside their slots.
#pragma once

#include "capture/mpi_library/handles.h"
#include "capture/mpi_library/take_in.h"

namespace backstay::mpi {

struct Message {
  Stored* stored;  // null: the real MPI has it
  const Communicator* in;
  abi::Status status;
};

// During a cut: takes in those that the real MPI has. True: one has arrived.
bool drive_messages();

}  // namespace backstay::mpi
