// Functions of the program that the real MPI calls without saying whose they are.
#pragma once

#include <stdint.h>

namespace backstay::mpi {

inline constexpr uint32_t trampolines = 256;

struct Function {
  void* function;
  bool is_fortran;        // it takes the numbers of handles, where a handle is none
  bool is_large = false;  // it takes a count of 64 bits
  bool operator==(const Function&) const = default;
};

// The place of a function, which keeps it: a handle may outlive its free. `trampolines`: no room.
inline uint32_t place_of(Function* all, uint32_t& count, Function function) {
  for (uint32_t i = 0; i < count; ++i) {
    if (all[i] == function) return i;
  }
  if (count == trampolines) return trampolines;
  all[count] = function;
  return count++;
}

}  // namespace backstay::mpi
