// `backstay run --transparent`: the companion in front of the program (docs/guide/transparent.md).
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

// The command line that starts the program with its companion.
// Errors: invalid (a launcher of several processes, settings that need calls of the program,
// captured files), not_found (the companion is not installed).
Result<Words> transparent_line(const RunOptions& options,
                               const std::optional<LauncherLine>& launcher, const Config& config);

}  // namespace backstay::bin
