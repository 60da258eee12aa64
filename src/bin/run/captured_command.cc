#include "bin/run/captured_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/program.h"
#include "base/program_name.h"
#include "bin/parts/executable.h"

namespace backstay::bin {
namespace {

bool is_here(const std::string& word) { return !find_program(word).empty(); }

// The program that begins at a word, up to the next ":". One that is on other hosts only is checked
// there.
Status check_program(const Words& words, std::size_t at, const std::string& folder) {
  const auto begin = words.begin() + static_cast<std::ptrdiff_t>(at);
  Words program(begin, std::find(begin, words.end(), ":"));
  program.front() = find_program_from(folder, program.front());
  return program.front().empty() ? Status() : check_takes_library(program);
}

Result<CapturedCommand> without_launcher(const Words& words, const Words& added) {
  if (const std::string launcher = unknown_launcher(words); !launcher.empty())
    return Error(Code::invalid,
                 fmt::format("{} is no launcher whose command line is known here: put `{}` before "
                             "the program there by hand",
                             launcher, fmt::join(added, " ")));
  BACKSTAY_ASSIGN(const std::string file, resolve_program(words.front()));
  Words program = words;
  program.front() = file;
  BACKSTAY_TRY(check_takes_library(program));
  CapturedCommand command{added, std::nullopt};
  command.words.insert(command.words.end(), words.begin(), words.end());
  return command;
}

}  // namespace

std::string unknown_launcher(const Words& words) {
  const ProgramOfLine program = program_of_line(words, is_here);
  const auto end = std::find(words.begin(), words.end(), program.file);
  const auto found = std::find_if(words.begin(), end, [](const std::string& word) {
    return is_launcher(std::filesystem::path(word).filename().string());
  });
  return found == end ? "" : *found;
}

Result<CapturedCommand> captured_command(const CaptureOptions& options, const Config& config,
                                         const Words& words,
                                         const std::optional<LauncherLine>& launcher,
                                         const std::string& job) {
  BACKSTAY_ASSIGN(const auto globs, checked_globs(options, config));
  if (globs.empty()) return CapturedCommand{words, launcher};
  BACKSTAY_TRY(find_capture_library());
  const Words added = words_of_exec(options, job);
  if (!launcher) return without_launcher(words, added);
  CapturedCommand command;
  BACKSTAY_ASSIGN(command.words, with_words_before_programs(words, *launcher, added));
  for (std::size_t i = 0; i < launcher->programs.size(); ++i)
    BACKSTAY_TRY(check_program(words, launcher->programs[i], launcher->folders[i]));
  command.launcher =
      parse_launcher_line(command.words, launcher->launcher, launcher->kind, is_program_from);
  return command;
}

}  // namespace backstay::bin
