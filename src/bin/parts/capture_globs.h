// The patterns of --capture-files: which files of a program are captured. No I/O: tested alone.
//
// A pattern is one of a shell (`*`, `?`, `[...]`) for a whole path. It is refused where it takes in
// what must never be captured, so that a mistake is an error at the start and not a program that
// cannot load its libraries: files of the system, the kernel's own folders, libraries, Backstay's
// folders, and everything in the working directory.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace backstay::bin {

struct CaptureFolders {
  std::string working;            // absolute: relative patterns count from here
  std::vector<std::string> ours;  // storage.dir, durable.dir; "" counts as none
};

// The patterns as absolute paths, in the same order. Errors: invalid (names the pattern, and says
// what to write in its place).
Result<std::vector<std::string>> absolute_globs(const std::vector<std::string>& globs,
                                                const CaptureFolders& folders);

}  // namespace backstay::bin
