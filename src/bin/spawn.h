// Starting other programs.
#pragma once

#include <string>
#include <vector>

namespace backstay::bin {

// Runs a program (looked up in PATH) without output and waits. 127 where it cannot be started.
int run_quietly(const std::vector<std::string>& words);

// For execv: pointers into `words`, then a null pointer.
std::vector<char*> argument_vector(std::vector<std::string>& words);

}  // namespace backstay::bin
