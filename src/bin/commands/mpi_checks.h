// The findings of `backstay doctor` on MPI: our libraries for programs that call Backstay; each MPI
// whose launcher is in PATH, and whether its unmodified programs are saved.
#pragma once

#include <vector>

#include "bin/commands/checks.h"

namespace backstay::bin {

// Opens each MPI library in a process of its own, for its version. Takes up to a second for each.
std::vector<Finding> check_mpis();

}  // namespace backstay::bin
