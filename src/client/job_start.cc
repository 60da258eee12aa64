#include "client/job_start.h"

#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <utility>

#include "base/tell.h"
#include "client/fewer_nodes.h"
#include "client/job_settings.h"

namespace backstay::client {

namespace {

// BACKSTAY_LAUNCH: 8 hexadecimal digits (base/ids.h). 0: not set.
Launch launch_in_environment() {
  const char* text = std::getenv("BACKSTAY_LAUNCH");
  return text == nullptr ? 0 : static_cast<Launch>(std::strtoul(text, nullptr, 16));
}

RunId new_run() {
  std::random_device device;
  const Launch launch = launch_in_environment();
  const RunId run = std::uint64_t{launch == 0 ? device() : launch} << 32 | device();
  return run == 0 ? 1 : run;
}

struct Loaded {
  Config config;
  std::string file;
  bool named = true;  // the user chose the job's name
};

Result<Loaded> load(const char* path) {
  const auto as_config = [](const Error& error) { return Error(Code::config, error.message()); };
  const auto file = find_config(path == nullptr ? "" : path);
  if (!file.ok()) return as_config(file.error());
  auto config = load_config(*file);
  if (!config.ok()) return as_config(config.error());
  const bool named = !config->job.name.empty();
  if (!named) config->job.name = default_job_name();
  const auto good = check_job_name(config->job.name);
  if (!good.ok()) return as_config(good.error().context("job.name (BACKSTAY_JOB)"));
  return Loaded{std::move(config).value(), *file, named};
}

// `backstay run` has said it already.
void warn_of_variables(const Group& group) {
  if (group.rank() != 0 || std::getenv("BACKSTAY_ATTEMPT") != nullptr) return;
  for (const std::string& warning : unknown_variables()) tell_user(warning);
}

// All ranks take rank 0's settings.
void keep_what_is_possible(const Group& group, Config& config) {
  if (group.rank() != 0 || !uses_agents(config)) return;
  const std::string told =
      keep_what_nodes_allow(config.protect, group.nodes(), std::getenv("BACKSTAY_ATTEMPT"));
  if (!told.empty()) tell_user(told);
}

// The ranks of one job may be different programs in different folders: rank 0 decides.
Status agree_on_job(const Group& group, JobStart& job) {
  struct {
    RunId run;
    std::array<char, 104> job;
  } shared{new_run(), {}};
  std::memcpy(shared.job.data(), job.config.job.name.data(), job.config.job.name.size());
  BACKSTAY_TRY(group.broadcast(&shared, sizeof shared));
  job.config.job.name.assign(shared.job.data(), ::strnlen(shared.job.data(), shared.job.size()));
  job.run = shared.run;
  return {};
}

}  // namespace

Result<JobStart> begin_job(const Group& group, const char* config) {
  auto loaded = load(config);
  BACKSTAY_TRY(group.agree(loaded.ok() ? Status() : Status(loaded.error())));
  if (!loaded.ok()) return loaded.error();  // cannot fail: agree() checked it
  JobStart job{.config = std::move(loaded->config), .file = loaded->file};
  warn_of_variables(group);
  keep_what_is_possible(group, job.config);
  BACKSTAY_TRY(take_settings_of_rank_0(group, job.config));
  BACKSTAY_TRY(agree_on_job(group, job));
  BACKSTAY_ASSIGN(job.origin, Origin::agree(group, job.config, loaded->named));
  return job;
}

}  // namespace backstay::client
