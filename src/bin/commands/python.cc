#include "bin/commands/python.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "base/program.h"
#include "bin/parts/spawn.h"

namespace backstay::bin {
namespace {

namespace fs = std::filesystem;

// The root of the source tree that this program was built in; "" if it is an installed one.
fs::path source_tree() {
  std::error_code failure;
  for (fs::path folder = program_folder(); folder != folder.root_path();
       folder = folder.parent_path())
    if (fs::exists(folder / "python/backstay/cli/__main__.py", failure) &&
        fs::exists(folder / "CMakePresets.json", failure))
      return folder;
  return {};
}

// Puts a folder in front of a variable that lists folders.
void put_before(const char* variable, const std::string& folder) {
  const char* others = std::getenv(variable);
  const std::string list = others && *others ? folder + ":" + others : folder;
  ::setenv(variable, list.c_str(), 1);
}

Error replace_process(const std::string& python, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{python, "-m", "backstay.cli"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto argv = argument_vector(words);
  ::execvp(python.c_str(), argv.data());
  return errno_error("start " + python, errno);
}

}  // namespace

const std::vector<PythonCommand>& python_commands() {
  static const auto& commands = *new std::vector<PythonCommand>{
      {"export", "Look at versions", "Write regions of a version as .npy, raw or VTK files"},
      {"report", "Look at versions", "Draw what happened to a job as a page that opens offline"},
      {"tune", "Before a job runs",
       "Try the strategies by which ranks write versions themselves, and say which suits"},
      {"plan", "Before a job runs",
       "Answer questions: how often to save, how long it takes, what it survives"},
  };
  return commands;
}

bool is_python_command(std::string_view name) {
  const auto& all = python_commands();
  return std::any_of(all.begin(), all.end(),
                     [&](const PythonCommand& c) { return c.name == name; });
}

Error run_in_python(const std::vector<std::string>& arguments) {
  if (const fs::path tree = source_tree(); !tree.empty()) {
    put_before("PYTHONPATH", (tree / "python").string());
    const fs::path python = tree / ".venv/bin/python";
    if (::access(python.c_str(), X_OK) != 0)
      return Error(Code::not_found, fmt::format("{} is missing; run `scripts/setup build` in {}",
                                                python.string(), tree.string()));
    return replace_process(python.string(), arguments);
  }
  std::error_code failure;
  if (const fs::path share = fs::path(program_folder()) / "../share/backstay/python";
      fs::exists(share / "backstay/cli", failure))
    put_before("PYTHONPATH", share.lexically_normal().string());
  const char* chosen = std::getenv("BACKSTAY_PYTHON");
  const bool named = chosen && *chosen;
  const fs::path own = fs::path(program_folder()) / "../lib/backstay/venv/bin/python";
  if (!named && ::access(own.c_str(), X_OK) == 0)
    return replace_process(own.lexically_normal().string(), arguments);
  const std::string python = named ? chosen : "python3";
  if (run_quietly({python, "-c", "import backstay.cli.__main__"}) != 0)
    return Error(
        Code::not_found,
        fmt::format(
            "`backstay {}` needs Python packages that {} lacks: run `{} -m pip install "
            "numpy xxhash typer rich`, or set BACKSTAY_PYTHON to an interpreter that has them",
            arguments.empty() ? "" : arguments.front(), python, python));
  return replace_process(python, arguments);
}

}  // namespace backstay::bin
