// `backstay exec`: becomes a program whose job is set up and whose files are captured.
//
// The process stays the same: its id, its parent, its descriptors and signals are the program's,
// and so are its name and argv[0]. Nothing is left of this program but variables
// (bin/parts/capture.h).
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/program.h"
#include "bin/parts/capture.h"
#include "bin/parts/collector.h"
#include "bin/parts/command.h"
#include "bin/parts/executable.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/named_job.h"
#include "bin/parts/print.h"
#include "bin/parts/settings.h"
#include "bin/parts/spawn.h"
#include "client/start.h"

namespace backstay::bin {
namespace {

using Words = std::vector<std::string>;

struct ExecOptions {
  Settings settings;
  std::string job;
  CaptureOptions capture;
  Words words;
};

// As a shell: 127 where there is no such program, else 126.
Result<int> cannot_start(const Error& error, bool json) {
  remark(error.message());
  if (json)
    print_json({{"error", {{"code", code_name(error.code())}, {"message", error.message()}}}});
  return error.code() == Code::not_found ? exit_no_program : exit_cannot_execute;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

// `backstay run` has named the job for all that it starts.
Status set_up_job(const ExecOptions& options, const Config& config, const Words& words) {
  const bool named_by_run = options.job.empty() && !variable("BACKSTAY_LAUNCH").empty() &&
                            !variable("BACKSTAY_JOB").empty();
  if (named_by_run) return {};
  const auto program =
      program_of_line(words, [](const std::string& word) { return !find_program(word).empty(); });
  BACKSTAY_ASSIGN(const NamedJob named,
                  name_job(options.job, config, program, words.front(), "backstay exec"));
  set_job_variables(named, options.job);
  return {};
}

Status set_up_capture(const Words& globs) {
  BACKSTAY_ASSIGN(const std::string library, find_capture_library());
  set("BACKSTAY_CAPTURE", fmt::format("{}", fmt::join(globs, "\n")));
  set("LD_PRELOAD", with_library(variable("LD_PRELOAD"), library));
  return {};
}

// Variables that a program reads wherever it, or a child of it, works.
void set_up_place(const ExecOptions& options, const Config& config, const std::string& file) {
  set_place_variables(config, file, options.settings.dir);
  set("BACKSTAY_DIR", config.storage.dir);
  set("BACKSTAY_AGENT_SOCKET", client::agent_address(config, file).socket_path);
}

Status refuse_launcher(const ExecOptions& options) {
  const std::string name = std::filesystem::path(options.words.front()).filename().string();
  if (!options.capture.any() || !is_launcher(name)) return {};
  return Error(
      Code::invalid,
      fmt::format("{} starts the program elsewhere, and must not be captured itself: write "
                  "`backstay run --capture-files GLOB -- {} ... PROGRAM`, or put `backstay "
                  "exec` behind it: `{} ... backstay exec --capture-files GLOB -- PROGRAM`",
                  name, name, name));
}

// Returns on failure only.
Result<int> exec(const ExecOptions& options) {
  const bool json = options.settings.json;
  BACKSTAY_ASSIGN(const std::string file, find_config(options.settings.config_file));
  BACKSTAY_ASSIGN(const Config config, load(options.settings));
  BACKSTAY_TRY(refuse_launcher(options));
  BACKSTAY_ASSIGN(const auto globs, checked_globs(options.capture, config));
  const auto program = resolve_program(options.words.front());
  if (!program.ok()) return cannot_start(program.error(), json);
  Words words = options.words;
  words.front() = *program;
  BACKSTAY_TRY(set_up_job(options, config, words));
  if (!globs.empty()) {
    if (const Status takes = check_takes_library(words); !takes.ok())
      return cannot_start(takes.error(), json);
    BACKSTAY_TRY(set_up_capture(globs));
  }
  set_up_place(options, config, file);
  if (!globs.empty()) {
    const Status collects = set_up_collector(config, file, variable("BACKSTAY_JOB"));
    if (!collects.ok())
      remark("captured files go to their places directly: " + collects.error().message());
  }
  words.front() = options.words.front();
  ::execvp(program->c_str(), argument_vector(words).data());
  return cannot_start(Error(Code::permission, why_not_executed(*program, errno)), json);
}

}  // namespace

Action declare_exec(CLI::App& app) {
  auto options = std::make_shared<ExecOptions>();
  app.add_option(
         "--job", options->job,
         "Name of the job; default: that of `backstay run`, job.name, else the file name of "
         "the program, or of what python, bash and the like run")
      ->type_name("NAME");
  add_capture_options(app, options->capture);
  add_settings(app, options->settings, true);
  app.add_option("command", options->words, "The program and its arguments")
      ->required()
      ->type_name("PROGRAM");
  app.positionals_at_end();
  app.footer(
      "Becomes the program: its process id, name, descriptors and signals are those of this "
      "command.\n"
      "Its children are captured with it; those with an environment of their own are not (env -i, "
      "sudo, ssh).\n"
      "Examples:\n"
      "  mpirun -n 4 backstay exec --capture-files '*.restart' -- lmp -in in.melt     behind a "
      "launcher\n"
      "  backstay run --capture-files '*.restart' -- mpirun -n 4 lmp -in in.melt      the same, "
      "and "
      "starts it\n"
      "                                                                               again when "
      "it "
      "fails\n"
      "  backstay exec --job lj -- ./lj in.lj                  sets the job up, and captures "
      "nothing\n"
      "Exit code: the program's; 126 or 127 where it cannot be started, or its files cannot be "
      "captured,\n"
      "2 wrong usage or configuration");
  return [options] { return exec(*options); };
}

}  // namespace backstay::bin
