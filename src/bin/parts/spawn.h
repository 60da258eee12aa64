// Starting other programs.
#pragma once

#include <sys/types.h>

#include <array>
#include <string>
#include <vector>

#include "base/result.h"

namespace backstay::bin {

// Starts a program (looked up in PATH) and goes on. `standard`: its input, output and errors; -1:
// /dev/null. It blocks no signal and takes SIGPIPE as usual. Errors: not_found, permission.
Result<pid_t> spawn(const std::vector<std::string>& words, const std::array<int, 3>& standard,
                    bool own_group = false);

// Runs a program (looked up in PATH) and returns what it wrote to stdout, at most 1 MiB. It has no
// input, its errors go nowhere, and after `timeout_s` it is killed. Errors: not_found, permission,
// timeout, io (it failed).
Result<std::string> run_and_read(const std::vector<std::string>& words, double timeout_s);

// The same for several, at most 32 at once; the answers in the same order.
std::vector<Result<std::string>> run_and_read_each(
    const std::vector<std::vector<std::string>>& commands, double timeout_s);

// Runs a program (looked up in PATH) without output and waits. 127 if it cannot be started.
int run_quietly(const std::vector<std::string>& words);

// For execv: pointers into `words`, then a null pointer.
std::vector<char*> argument_vector(std::vector<std::string>& words);

}  // namespace backstay::bin
