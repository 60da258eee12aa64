// `backstay run --transparent`: the companion in front of each program
// (docs/guide/transparent.md).
#pragma once

#include <optional>
#include <string>

#include "base/config.h"
#include "base/result.h"
#include "bin/run/launcher_line.h"
#include "bin/run/runner.h"

namespace backstay::bin {

// The companion's program. Errors: not_found (Backstay is not installed as a whole).
Result<std::string> find_companion();

// The folder of the lower half and of our MPI libraries (docs/protocol/lower-half.md): beside the
// companion where Backstay is installed, at the top of a build tree. "": it is missing.
std::string find_mpi_folder(const std::string& companion);

struct TransparentCommand {
  Words words;
  std::optional<LauncherLine> launcher;  // of these words
};

// The command line that starts each program with its companion. The files that `options.capture`
// names belong to the versions; they are not captured apart.
// Errors: invalid (a launcher that is not known or has its programs in a file, several programs on
// several hosts, settings that need calls of the program; as checked_globs()), not_found (the
// companion is not installed).
Result<TransparentCommand> transparent_command(const RunOptions& options,
                                               const std::optional<LauncherLine>& launcher,
                                               const Config& config);

}  // namespace backstay::bin
