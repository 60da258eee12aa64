#include "bin/run/transparent.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/program.h"
#include "bin/parts/capture.h"
#include "bin/run/captured_command.h"
#include "meet/place.h"

namespace backstay::bin {
namespace {

Error refused(const std::string& why) { return {Code::invalid, "--transparent " + why}; }

Status check_launcher(const Words& words, const std::optional<LauncherLine>& launcher) {
  constexpr const char* known = "mpirun or mpiexec of Open MPI or MPICH, or srun";
  if (!launcher) {
    const auto at = find_launcher(words);
    const std::string name = at ? words[*at] : unknown_launcher(words);
    if (name.empty()) return {};
    return refused(
        fmt::format("takes the launchers that it knows, {}, and {} is none of them", known, name));
  }
  const std::string& name = words[launcher->launcher];
  if (!launcher->app_file.empty())
    return refused(
        fmt::format("puts its companion before each program, and {} has its programs in "
                    "{}: write them on the command line",
                    name, launcher->app_file));
  if (launcher->several_programs && launcher->has_hosts())
    return refused(
        fmt::format("takes several programs (\":\") on this host alone, and {} names hosts", name));
  return {};
}

meet::Launcher as_met(LauncherKind kind) {
  switch (kind) {
    case LauncherKind::openmpi: return meet::Launcher::openmpi;
    case LauncherKind::mpich: return meet::Launcher::mpich;
    case LauncherKind::slurm: return meet::Launcher::slurm;
  }
  return meet::Launcher::openmpi;
}

Words companion_of(const std::string& program, const std::optional<LauncherLine>& launcher,
                   const std::vector<std::string>& contents) {
  Words words{program};
  if (launcher) {
    words.insert(words.end(),
                 {"--launcher", std::string(meet::launcher_name(as_met(launcher->kind)))});
    if (const std::string folder = find_mpi_folder(program); !folder.empty())
      words.insert(words.end(), {"--mpi", folder});
  }
  for (const std::string& pattern : contents) words.insert(words.end(), {"--contents", pattern});
  words.emplace_back("--");
  return words;
}

}  // namespace

std::string find_mpi_folder(const std::string& companion) {
  const std::string folder = std::filesystem::path(companion).parent_path().string();
  for (const char* step : {"/mpi", "/../../../mpi"})
    if (is_program(folder + step + "/backstay-lower"))
      return std::filesystem::path(folder + step).lexically_normal().string();
  return "";
}

Result<std::string> find_companion() {
  const std::string path = find_own_program("backstay-companion", "/../capture/companion/");
  if (!path.empty()) return path;
  return Error(Code::not_found,
               "backstay-companion, which --transparent needs, is missing beside " +
                   program_folder() + ": Backstay is not installed as a whole");
}

Result<TransparentCommand> transparent_command(const RunOptions& options,
                                               const std::optional<LauncherLine>& launcher,
                                               const Config& config) {
  BACKSTAY_TRY(check_launcher(options.words, launcher));
  if (config.checkpoint.policy == "calls")
    return Error(Code::invalid,
                 "checkpoint.policy is calls, which counts calls that a program under "
                 "--transparent does not make: set --interval, or the policy daly or request");
  BACKSTAY_ASSIGN(const std::string companion, find_companion());
  BACKSTAY_ASSIGN(const auto contents, checked_globs(options.capture, config));
  const Words added = companion_of(companion, launcher, contents);
  TransparentCommand command{added, std::nullopt};
  if (!launcher) {
    command.words.insert(command.words.end(), options.words.begin(), options.words.end());
    return command;
  }
  BACKSTAY_ASSIGN(command.words, with_words_before_programs(options.words, *launcher, added));
  command.launcher =
      parse_launcher_line(command.words, launcher->launcher, launcher->kind, is_program_from);
  return command;
}

}  // namespace backstay::bin
