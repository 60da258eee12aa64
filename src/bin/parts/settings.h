// Options that most subcommands share: --config, --dir, --json; and the configuration behind them.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>

#include "base/config.h"

namespace backstay::bin {

struct Settings {
  std::string config_file;  // --config
  std::string dir;          // --dir
  bool json = false;        // --json
};

// Adds --config and --json, and --dir if the command works on stored versions.
void add_settings(CLI::App& app, Settings& settings, bool with_dir);

// Validators for options of these kinds; the message says in words what is wrong.
CLI::Validator a_version();                     // a whole number from 1
CLI::Validator a_rank();                        // a whole number from 0
CLI::Validator a_count();                       // also from 0: how many of something
CLI::Validator some_seconds(bool zero_is_one);  // more than 0 (or 0 too), at most 1e9
CLI::Validator seconds_between(double least, double most);

// The configuration of this call: file, environment, then the command line.
Result<Config> load(const Settings& settings);
// The same for who looks at versions: without --dir, storage.dir is durable.dir where the ranks of
// programs write there by themselves.
Result<Config> load_for_versions(const Settings& settings);

// `job` if given, else the configured one. Errors: invalid (neither; or not a job name).
Result<std::string> job_or_configured(const std::string& job, const Config& config);

}  // namespace backstay::bin
