// Why the program cannot be saved: for its life, or while it has something open that no image can
// hold. The channel has one reason, which the companion reads (docs/protocol/cut.md, "Counting").
#pragma once

#include <stdint.h>

namespace backstay::mpi {

enum class Open : uint32_t {
  file,
  window,
  own_request,
  freed_communicator,  // with an open receive
  duplicate,           // MPI_Comm_idup. Open MPI 4.1 does not always complete it in a loop of tests
  what_stands          // seen when a cut has stopped the program
};

// From here on. `why`: a string literal, a sentence's end behind "because".
void refuse(const char* why);
// Until let_go() was called as often. Both of a call that is counted.
void hold_back(Open what);
void let_go(Open what);
// Where `what` has a reason of its own each time.
void hold_back(Open what, const char* why);
// In another process: writes the reason into its channel.
void renew_refusals();

}  // namespace backstay::mpi
