// Capturing the files of a program that does not call Backstay: the options that `backstay exec`
// and `backstay run` share, the library that is loaded into the program, and its variables.
//
//   BACKSTAY_CAPTURE   the patterns as absolute paths, one a line
//   LD_PRELOAD         the user's own libraries, then ours
//
// The variables reach the program's children as all variables do. A child escapes that has an
// environment of its own (env -i, sudo, ssh), that is static or set-user-id, or that a daemon
// starts for the program (at, cron, systemd-run).
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/result.h"

namespace backstay::bin {

struct CaptureOptions {
  std::vector<std::string> globs;  // --capture-files; empty: nothing is captured

  bool any() const { return !globs.empty(); }
};

// `more`: what else the command's help says of it.
void add_capture_options(CLI::App& app, CaptureOptions& options, const std::string& more = "");

// The patterns as absolute paths from this process's working directory. Errors: invalid (a pattern
// that takes in what must not be captured), too_large (too many patterns).
Result<std::vector<std::string>> checked_globs(const CaptureOptions& options, const Config& config);

// libbackstay_files.so of the build tree or the installation that this program is from. Errors:
// unsupported (it is missing: says where it looked; or its path has a character that LD_PRELOAD
// cannot hold).
Result<std::string> find_capture_library();

// `own` is the user's LD_PRELOAD, may be "". Ours comes last, and once.
std::string with_library(const std::string& own, const std::string& library);

// The words that capture a program's files wherever the program is started: this program's path,
// exec, the options, --.
std::vector<std::string> words_of_exec(const CaptureOptions& options, const std::string& job);

}  // namespace backstay::bin
