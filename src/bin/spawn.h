// Starting other programs.
#pragma once

#include <string>
#include <vector>

namespace backstay::bin {

// Runs a program (looked up in PATH) without output and waits. 127 where it cannot be started.
int run_quietly(const std::vector<std::string>& words);

// The path of an executable file, looked up in PATH unless it holds a slash; "" where there is none.
std::string find_program(const std::string& name);

// For execv: pointers into `words`, then a null pointer.
std::vector<char*> argument_vector(std::vector<std::string>& words);

}  // namespace backstay::bin
