// Functions of the program that the real MPI calls without saying whose they are.
#pragma once

#include <stdint.h>

namespace backstay::mpi {

inline constexpr uint32_t trampolines = 256;

// Numbers: of handles, where a handle is none.
enum class Takes : uint8_t { handles, numbers, large_count };

struct Function {
  void* function;
  Takes takes;
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
