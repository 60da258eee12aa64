// The name of the job that a command starts, and the variables by which the program's library
// learns it.
#pragma once

#include <string>

#include "base/config.h"
#include "base/program_name.h"

namespace backstay::bin {

struct NamedJob {
  std::string job;
  std::string program;  // "": not known
  bool by_user = true;
};

// `asked`: --job, may be "". `first_word` and `command` ("backstay run") are for messages.
// Errors: invalid, config (what to write, or what a job may be called).
Result<NamedJob> name_job(const std::string& asked, const Config& config,
                          const ProgramOfLine& program, const std::string& first_word,
                          const char* command);

// Sets BACKSTAY_JOB, BACKSTAY_PROGRAM and BACKSTAY_DEFAULT_JOB for the programs that this process
// starts. `asked` as above: a name that the user gives is no default, whatever the environment
// says.
void set_job_variables(const NamedJob& named, const std::string& asked);

// Sets BACKSTAY_CONFIG, BACKSTAY_AGENT_PROGRAM and, if `dir` (--dir) is given, BACKSTAY_DIR, so
// that the program finds the same settings wherever it works. `file` as find_config() has it.
void set_place_variables(const Config& config, const std::string& file, const std::string& dir);

}  // namespace backstay::bin
