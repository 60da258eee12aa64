#include "bin/settings.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <filesystem>

#include "base/ids.h"

namespace backstay::bin {

void add_settings(CLI::App& app, Settings& settings, bool with_dir) {
  app.add_option("--config", settings.config_file,
                 "Configuration file; default: $BACKSTAY_CONFIG, ./backstay.toml, "
                 "~/.config/backstay.toml")
      ->type_name("FILE");
  if (with_dir)
    app.add_option("--dir", settings.dir, "Folder of the versions (storage.dir)")->type_name("DIR");
  app.add_flag("--json", settings.json, "Print JSON (its keys are stable)");
}

Result<Config> load(const Settings& settings) {
  BACKSTAY_ASSIGN(const std::string file, find_config(settings.config_file));
  BACKSTAY_ASSIGN(Config config, load_config(file));
  std::error_code failure;
  if (!settings.dir.empty())
    config.storage.dir =
        std::filesystem::absolute(settings.dir, failure).lexically_normal().string();
  return config;
}

Result<std::string> job_or_configured(const std::string& job, const Config& config) {
  const std::string name = job.empty() ? config.job.name : job;
  if (name.empty())
    return Error(Code::invalid,
                 "which job? Give its name (`backstay ls` lists them) or set job.name");
  BACKSTAY_TRY(check_job_name(name));
  return name;
}

}  // namespace backstay::bin
