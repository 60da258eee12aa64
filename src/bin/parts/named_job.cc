#include "bin/parts/named_job.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/ids.h"
#include "client/launch.h"

namespace backstay::bin {
namespace {

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

Error nameless(const std::string& why, const char* command) {
  return {Code::invalid, fmt::format("{}give the job a name: {} --job NAME -- ...", why, command)};
}

}  // namespace

Result<NamedJob> name_job(const std::string& asked, const Config& config,
                          const ProgramOfLine& program, const std::string& first_word,
                          const char* command) {
  NamedJob named{asked.empty() ? config.job.name : asked, program.name, true};
  if (named.job.empty()) named = {job_name_of(program.name), program.name, false};
  if (!named.job.empty()) {
    BACKSTAY_TRY(check_job_name(named.job));
    return named;
  }
  if (program.interpreted)
    return nameless(fmt::format("{} runs no script or module here that the job could be named "
                                "after: ",
                                program.file),
                    command);
  if (!program.behind.empty())
    return nameless(fmt::format("{} may run {}, so the job is not named after it: ", program.file,
                                program.behind),
                    command);
  if (program.file.empty())
    return nameless(fmt::format("none of the words behind {} is a program that can be executed "
                                "here; is its path right? If it is on other hosts only, ",
                                first_word),
                    command);
  return nameless("", command);
}

void set_job_variables(const NamedJob& named, const std::string& asked) {
  set("BACKSTAY_JOB", named.job);
  named.program.empty() ? (void)::unsetenv("BACKSTAY_PROGRAM")
                        : set("BACKSTAY_PROGRAM", named.program);
  if (!named.by_user) set("BACKSTAY_DEFAULT_JOB", named.job);
  if (!asked.empty()) ::unsetenv("BACKSTAY_DEFAULT_JOB");
}

void set_place_variables(const Config& config, const std::string& file, const std::string& dir) {
  std::error_code ignored;
  if (!file.empty()) set("BACKSTAY_CONFIG", std::filesystem::absolute(file, ignored).string());
  if (!dir.empty()) set("BACKSTAY_DIR", config.storage.dir);
  if (const auto program = client::find_agent_program(config.agent.program); program.ok())
    set("BACKSTAY_AGENT_PROGRAM", *program);
}

}  // namespace backstay::bin
