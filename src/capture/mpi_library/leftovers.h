// State of MPI that has no handle: memory, the buffer of MPI_Bsend, error codes of the program, and
// the functions of generalized requests.
#pragma once

namespace backstay::mpi {

// In the order in which the program added them, which gives the same codes.
void renew_error_codes();
void renew_buffer();

}  // namespace backstay::mpi
