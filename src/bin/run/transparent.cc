#include "bin/run/transparent.h"

#include <fmt/format.h>

#include "base/program.h"

namespace backstay::bin {

// Installed: in libexec; else where its target is in a build tree.
Result<std::string> find_companion() {
  const std::string folder = program_folder();
  for (const char* step : {"/../libexec/backstay/", "/", "/../capture/companion/"}) {
    const std::string path = folder + step + "backstay-companion";
    if (is_program(path)) return path;
  }
  return Error(Code::not_found,
               fmt::format("backstay-companion, which --transparent needs, is missing beside {}: "
                           "Backstay is not installed as a whole",
                           folder));
}

Result<Words> transparent_line(const RunOptions& options,
                               const std::optional<LauncherLine>& launcher, const Config& config) {
  if (launcher)
    return Error(Code::invalid,
                 fmt::format("--transparent saves one process, and {} starts several: programs of "
                             "MPI cannot be saved without a change yet",
                             options.words.front()));
  if (options.capture.any())
    return Error(
        Code::invalid,
        "--capture-files and --transparent cannot be given together yet: files are cut back "
        "to their length at the cut (docs/guide/transparent.md)");
  if (config.checkpoint.policy == "calls")
    return Error(Code::invalid,
                 "checkpoint.policy is calls, which counts calls that a program under "
                 "--transparent does not make: set --interval, or the policy daly or request");
  BACKSTAY_ASSIGN(const std::string companion, find_companion());
  Words line{companion, "--"};
  line.insert(line.end(), options.words.begin(), options.words.end());
  return line;
}

}  // namespace backstay::bin
