// Every function of MPI has two names: MPI_x, which a tool may replace, and PMPI_x.
#pragma once

#include <indices.h>

#include "capture/mpi_library/call.h"
#include "capture/mpi_library/handles.h"

// Behind the definition of P<name>, in the same file.
#define BACKSTAY_MPI_NAME(name) \
  extern decltype(P##name) name __attribute__((weak, alias("P" #name)));

namespace backstay::mpi {

// What a function returned: of a number of 4 bytes the rest is undefined.
template <Class Type>
uint64_t real_result(uint64_t value) {
  constexpr bool is_short = !abi::handles_are_pointers && Type != Class::file;
  return is_short ? static_cast<uint32_t>(value) : value;
}

// A length that the program gives by a pointer, which may be null.
inline int pointed(const void* to) { return to != nullptr ? *static_cast<const int*>(to) : 0; }

}  // namespace backstay::mpi
