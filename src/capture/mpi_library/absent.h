// Functions that programs may name and this library does not have.
#pragma once

namespace backstay::mpi {

[[noreturn]] void end_at_absent(const char* name);

}  // namespace backstay::mpi
