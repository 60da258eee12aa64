// How long the arrays of a collective call are.
#pragma once

#include "capture/mpi_library/call.h"
#include "capture/mpi_library/handles.h"

namespace backstay::mpi {

struct Degrees {
  int in = 0, out = 0;
};

// How many there are on the other side of a collective call.
Degrees peers_of(abi::Handle<Class::comm> comm);
// The neighbours in a topology. Without one MPI refuses the call itself.
Degrees degrees_of(abi::Handle<Class::comm> comm);
// With MPI_IN_PLACE MPI does not look at what is to be sent.
inline constexpr uint64_t in_place = abi::handles_are_pointers ? 1 : ~0ULL;
inline int64_t sent(const void* buffer, int64_t count) {
  return reinterpret_cast<uint64_t>(buffer) == in_place ? 0 : count;
}

}  // namespace backstay::mpi
