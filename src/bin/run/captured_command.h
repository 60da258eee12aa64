// `backstay run --capture-files`: the command line whose programs are started by `backstay exec`.
//
// It stands before each program and behind the launcher, so the library is loaded in each rank and
// in no process of the launcher. Blocks on the file system.
#pragma once

#include <optional>

#include "bin/parts/capture.h"
#include "bin/run/launcher_line.h"

namespace backstay::bin {

struct CapturedCommand {
  Words words;
  std::optional<LauncherLine> launcher;  // of these words
};

// The first word of a line without a known launcher that starts programs by means that are not
// known here; "" if there is none.
std::string unknown_launcher(const Words& words);

// Checks what can be checked before the start: patterns, the library, and each program that is
// found on this host. `job`: a name for programs that do not get this process's variables; "":
// none. Errors: invalid (patterns; a program is not found; a launcher that is not known),
// unsupported (no library), not_found and permission (a program cannot be started, or cannot be
// captured).
Result<CapturedCommand> captured_command(const CaptureOptions& options, const Config& config,
                                         const Words& words,
                                         const std::optional<LauncherLine>& launcher,
                                         const std::string& job);

}  // namespace backstay::bin
