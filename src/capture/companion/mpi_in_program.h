// Whether a program uses MPI through our library (docs/protocol/lower-half.md).
#pragma once

#include <sys/types.h>

#include <string>

namespace backstay::image {

// The file name of the MPI library in `folder` that the process has mapped; "": none. Exact while
// the process stands still.
std::string mpi_library_of(pid_t process, const std::string& folder);

}  // namespace backstay::image
