#include "bin/parts/settings.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/ids.h"
#include "bin/parts/print.h"

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

namespace {

// The limit of times: longer ones would not fit into the nanoseconds of a deadline.
constexpr double seconds_max = 1e9;

CLI::Validator whole_number(std::uint64_t least, const char* what) {
  const auto check = [least, what](const std::string& text) -> std::string {
    std::uint64_t number = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool good =
        parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size() && number >= least;
    return good ? "" : fmt::format("\"{}\" is no {}", text, what);
  };
  return CLI::Validator(check, "");
}

}  // namespace

CLI::Validator a_version() {
  return whole_number(1, "number of a version: they count from 1 (`backstay ls JOB` lists them)");
}

CLI::Validator a_rank() { return whole_number(0, "rank: they count from 0"); }

CLI::Validator a_count() { return whole_number(0, "whole number from 0 on"); }

CLI::Validator some_seconds(bool zero_is_one) {
  const auto check = [zero_is_one](const std::string& text) -> std::string {
    char* end = nullptr;
    const double seconds = std::strtod(text.c_str(), &end);
    const bool number = !text.empty() && *end == '\0';
    const bool good = zero_is_one ? seconds >= 0 : seconds > 0;
    if (number && good && seconds <= seconds_max) return "";
    return fmt::format("\"{}\" must be a number of seconds {} 0 and at most {:.0f}", text,
                       zero_is_one ? "of at least" : "greater than", seconds_max);
  };
  return CLI::Validator(check, "");
}

CLI::Validator seconds_between(double least, double most) {
  const auto check = [least, most](const std::string& text) -> std::string {
    char* end = nullptr;
    const double seconds = std::strtod(text.c_str(), &end);
    // Comparisons with NaN are false.
    if (!text.empty() && *end == '\0' && seconds >= least && seconds <= most) return "";
    return fmt::format("\"{}\" must be a number of seconds from {} to {}", text, least, most);
  };
  return CLI::Validator(check, "");
}

Result<Config> load(const Settings& settings) {
  BACKSTAY_ASSIGN(const std::string file, find_config(settings.config_file));
  BACKSTAY_ASSIGN(Config config, load_config(file));
  const bool under_run = std::getenv("BACKSTAY_LAUNCH") != nullptr;  // which has said it for all
  for (const std::string& warning : unknown_variables())
    if (!under_run) remark(warning);
  std::error_code failure;
  if (!settings.dir.empty())
    config.storage.dir =
        std::filesystem::absolute(settings.dir, failure).lexically_normal().string();
  return config;
}

Result<Config> load_for_versions(const Settings& settings) {
  BACKSTAY_ASSIGN(Config config, load(settings));
  if (settings.dir.empty() && !uses_agents(config) && !config.durable.dir.empty())
    config.storage.dir = config.durable.dir;
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
