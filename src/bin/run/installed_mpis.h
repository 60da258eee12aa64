// The MPIs that a user of this PATH has.
#pragma once

#include <string>
#include <vector>

namespace backstay::bin {

// Paths of the libraries that lie beside launchers in PATH, in its order; links followed.
std::vector<std::string> installed_mpis();

}  // namespace backstay::bin
