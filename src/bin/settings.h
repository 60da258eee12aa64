// Options that most subcommands share: --config, --dir, --json; and the configuration behind them.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "base/config.h"

namespace backstay::bin {

struct Settings {
  std::string config_file;  // --config
  std::string dir;          // --dir
  bool json = false;        // --json
};

// Adds --config and --json, and --dir where the command works on stored versions.
void add_settings(CLI::App& app, Settings& settings, bool with_dir);

// The configuration of this call: file, environment, then the command line.
Result<Config> load(const Settings& settings);

// `job` if given, else the configured one. Errors: invalid (neither; or not a job name).
Result<std::string> job_or_configured(const std::string& job, const Config& config);

}  // namespace backstay::bin
