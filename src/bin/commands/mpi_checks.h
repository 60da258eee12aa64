// What `backstay doctor` says of MPI: our libraries for programs that call Backstay, and each MPI
// whose launcher PATH has, with whether its programs are saved unmodified.
#pragma once

#include <vector>

#include "bin/commands/checks.h"

namespace backstay::bin {

// Opens each MPI library in a process of its own, for its version. Takes up to a second for each.
std::vector<Finding> check_mpis();

}  // namespace backstay::bin
