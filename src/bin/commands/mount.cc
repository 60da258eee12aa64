// `backstay mount` and `backstay unmount`
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/folders.h"
#include "bin/commands/mount_checks.h"
#include "bin/parts/collector.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/mount_start.h"
#include "bin/parts/named_job.h"
#include "bin/parts/print.h"
#include "bin/parts/progress.h"
#include "bin/parts/settings.h"
#include "bin/parts/spawn.h"
#include "capture/mount/mounts.h"
#include "client/files_job.h"

namespace backstay::bin {
namespace {

struct MountOptions {
  Settings settings;
  std::string folder;
  std::string target;
  std::string job;
  std::vector<std::string> globs;
};

// --job, job.name, else the folder's name.
Status name_mount(const MountOptions& options, const Config& config, std::string& job) {
  ProgramOfLine program;
  program.name = std::filesystem::path(job).filename().string();
  BACKSTAY_ASSIGN(const NamedJob named,
                  name_job(options.job, config, program, program.name, "backstay mount"));
  set_job_variables(named, options.job);
  job = named.job;
  return {};
}

Result<int> mount(const MountOptions& options) {
  BACKSTAY_ASSIGN(const std::string file, find_config(options.settings.config_file));
  BACKSTAY_ASSIGN(const Config config, load(options.settings));
  BACKSTAY_TRY(find_mount_program());
  BACKSTAY_ASSIGN(const MountFolders folders, check_mount(options.folder, options.target, config));
  MountPlan plan{folders.folder, folders.target, folders.folder, ""};
  BACKSTAY_ASSIGN(plan.patterns, mount_patterns(options.globs, folders.folder));
  BACKSTAY_TRY(name_mount(options, config, plan.job));
  set_place_variables(config, file, options.settings.dir);
  BACKSTAY_TRY(start_mount(config, file, plan));
  const std::string files_job = client::files_job_name(plan.job);
  if (options.settings.json)
    print_json({{"folder", plan.folder}, {"target", plan.target}, {"job", files_job}});
  else
    fmt::print(
        "{} shows {}; files that are written there are versions of job {}\n"
        "`backstay unmount {}` ends it once they are at their places\n",
        plan.folder, plan.target, files_job, plan.folder);
  return exit_ok;
}

struct UnmountOptions {
  Settings settings;
  std::string folder;
  double timeout_s = 600;
};

Error not_mounted(const std::string& folder) {
  std::string all;
  for (const mount::Mount& one : mount::mounts()) all += (all.empty() ? "" : ", ") + one.folder;
  return {Code::not_found, fmt::format("{} is not mounted by `backstay mount`{}", folder,
                                       all.empty() ? "; nothing is here" : ": these are: " + all)};
}

// A dead one is taken from the programs that have it open: they get errors in any case.
Status take_away(const std::string& folder, bool dead) {
  std::vector<std::string> words{"fusermount3", "-u"};
  if (dead) words.emplace_back("-z");
  words.insert(words.end(), {"--", folder});
  if (run_quietly(words) == 0) return {};
  const std::string users = users_of(folder);
  return Error(Code::busy,
               fmt::format("{} cannot be unmounted{}", folder,
                           users.empty() ? ": fusermount3 -u refuses" : " while " + users));
}

Status bring_home(const Config& config, const std::string& job) {
  if (job.empty()) {
    remark("which job its files belong to is not known here: `backstay ls --files` shows them");
    return {};
  }
  const auto tell = [](const std::string& text) { remark(text); };
  return settle_captured_files(config, job, tell, [] { return true; });
}

Result<int> unmount(const UnmountOptions& options) {
  BACKSTAY_ASSIGN(const std::string file, find_config(options.settings.config_file));
  BACKSTAY_ASSIGN(const Config config, load(options.settings));
  BACKSTAY_ASSIGN(const std::string folder, mounted_folder(options.folder));
  const auto all = mount::mounts();
  const auto found = std::ranges::find(all, folder, &mount::Mount::folder);
  if (found == all.end()) return not_mounted(folder);
  const bool dead = mount::is_dead(folder);
  const auto record = record_of_mount(config, folder);
  const std::string job = record.ok() ? record->job : "";
  BACKSTAY_TRY(take_away(folder, dead));
  {
    const Progress progress("files come to their places", 0);
    if (!dead && !end_mount_daemon(config, folder, options.timeout_s))
      return Error(Code::timeout,
                   fmt::format("{} is unmounted, and its files are not all at their places yet; "
                               "`backstay ls --files {}` shows them",
                               folder, job.empty() ? "JOB" : client::files_job_name(job)));
    if (dead) remove_mount_record(config, folder);
  }
  if (record.ok()) set_collector_variables(config, file, *record);
  BACKSTAY_TRY(bring_home(config, job));
  if (options.settings.json)
    print_json({{"folder", folder}, {"target", found->target}, {"was_dead", dead}});
  else
    fmt::print("{} is unmounted{}; all files are in {}\n", folder,
               dead ? ", its daemon had died" : "", found->target);
  return exit_ok;
}

}  // namespace

Action declare_mount(CLI::App& app) {
  auto options = std::make_shared<MountOptions>();
  app.add_option("folder", options->folder, "An empty folder, through which programs write")
      ->required()
      ->type_name("DIR");
  app.add_option("--over", options->target, "The folder that the files belong to")
      ->required()
      ->type_name("TARGET");
  app.add_option("--job", options->job, "Name of the job; default: job.name, else the name of DIR")
      ->type_name("NAME");
  app.add_option("--capture-files", options->globs,
                 "Capture only files whose path below DIR this pattern matches; quote it. May be "
                 "given several times")
      ->type_name("GLOB")
      ->expected(1)
      ->take_all()
      ->allow_extra_args(false);
  add_settings(app, options->settings, true);
  app.footer(
      "Shows TARGET at DIR. Files that programs create or empty there stay in memory until they "
      "are closed,\n"
      "and come to TARGET in the background, whole. For static programs, and all that "
      "--capture-files of\n"
      "`backstay exec` cannot take.\n"
      "Examples:\n"
      "  backstay mount fast --over /scratch/me/out       then: ./static-program fast/restart.1\n"
      "  backstay mount fast --over out --capture-files '**/*.restart'\n"
      "Exit codes: 0 ok, 1 it cannot be mounted, 2 folders or patterns that do not fit, 3 a folder "
      "is missing,\n"
      "5 the daemon has ended, 7 DIR is mounted already");
  return [options] { return mount(*options); };
}

Action declare_unmount(CLI::App& app) {
  auto options = std::make_shared<UnmountOptions>();
  app.add_option("folder", options->folder, "Where `backstay mount` has mounted")
      ->required()
      ->type_name("DIR");
  app.add_option("--timeout", options->timeout_s, "Seconds to wait until all files are in TARGET")
      ->type_name("SECONDS")
      ->check(some_seconds(false))
      ->capture_default_str();
  add_settings(app, options->settings, true);
  app.footer(
      "Ends a mount, and waits until its files are in TARGET. Removes what a daemon that died has "
      "left.\n"
      "Examples:\n"
      "  backstay unmount fast\n"
      "Exit codes: 0 ok, 1 a file could not be brought to its place, 3 not mounted, 6 not in time, "
      "7 programs use it");
  return [options] { return unmount(*options); };
}

}  // namespace backstay::bin
