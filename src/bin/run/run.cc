// `backstay run`: starts a program, forwards signals, restarts it after a failure (runner.h).
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/clock.h"
#include "base/program.h"
#include "base/program_name.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/agent_start.h"
#include "bin/parts/command.h"
#include "bin/parts/executable.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/named_job.h"
#include "bin/parts/print.h"
#include "bin/parts/settings.h"
#include "bin/run/captured_command.h"
#include "bin/run/restart_policy.h"
#include "bin/run/runner.h"
#include "bin/run/storage_here.h"
#include "bin/run/transparent.h"
#include "client/launch.h"
#include "client/run_mark.h"
#include "store/job_lock.h"
#include "wire/socket.h"

namespace backstay::bin {
namespace {

struct RunCommandOptions {
  Settings settings;
  std::string job;
  bool fresh = false;
  bool transparent = false;
  double interval_s = 0;  // 0: as configured
  RunOptions run;
};

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

Launch new_launch() {
  std::random_device device;
  return std::max<Launch>(device(), 1);
}

// The sign of --fresh: only versions that were saved with it count for this command. Slurm starts a
// requeued job's command again.
std::string fresh_sign(bool requeue) {
  const char* slurm_job = std::getenv("SLURM_JOB_ID");
  if (requeue && slurm_job != nullptr) return fmt::format("slurm job {}", slurm_job);
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

// Sets the variables that the ranks' libraries read. Launchers pass the environment on to ranks of
// this node.
void set_environment(const RunCommandOptions& options, const Config& config, const NamedJob& named,
                     const std::string& file) {
  set_job_variables(named, options.job);
  ::unsetenv("BACKSTAY_FROM");
  if (options.run.from > 0) set("BACKSTAY_FROM", std::to_string(options.run.from));
  if (options.fresh) set("BACKSTAY_FRESH", fresh_sign(options.run.hosts.requeue));
  set("BACKSTAY_ATTEMPT", "0");
  set("BACKSTAY_LAUNCH", fmt::format("{:08x}", options.run.launch));
  set_place_variables(config, file, options.settings.dir);
  if (options.interval_s > 0) {
    set("BACKSTAY_CHECKPOINT_POLICY", "interval");
    set("BACKSTAY_CHECKPOINT_INTERVAL_S", fmt::format("{}", options.interval_s));
  }
}

// The program behind the launcher, whose options may name programs too.
Words program_words(const Words& words, const std::optional<LauncherLine>& launcher) {
  if (!launcher || launcher->program == words.size()) return words;
  return {words.begin() + static_cast<std::ptrdiff_t>(launcher->program), words.end()};
}

// In Slurm an agent ends with its job step: an agent that other jobs share would end with their
// data.
bool needs_agents_of_its_own(const Config& config, const std::optional<LauncherLine>& launcher) {
  return uses_agents(config) && config.agent.socket.empty() && launcher &&
         launcher->kind == LauncherKind::slurm && !launcher->several_programs &&
         !wire::slurm_socket_path().empty();
}

void give_agents_of_its_own(Config& config) {
  config.agent.socket = wire::slurm_socket_path();
  ::setenv("BACKSTAY_AGENT_SOCKET", config.agent.socket.c_str(), 1);
}

// Refuses a job that an agent serves which our program will not use: that agent's lock would refuse
// each rank.
Status refuse_served(const Config& config, const std::string& job) {
  if (!job_in_agent(config, job, "").is_null()) return {};
  const Status unlocked = store::check_unlocked(config.storage.dir, job);
  if (unlocked.ok()) return {};
  return Error(unlocked.error().code(),
               fmt::format("job {} is running here already: {}; wait for its end, or give this one "
                           "another name with --job",
                           job, unlocked.error().message()));
}

// An exit code, as of a shell.
int cannot_start(const Error& error) {
  remark(error.message());
  return error.code() == Code::not_found ? exit_no_program : exit_cannot_execute;
}

bool program_is_at_fault(const Error& error) {
  return error.code() == Code::not_found || error.code() == Code::permission;
}

// Errors: busy (another program of the job runs), those of the hosts, those of storage.dir.
Status make_ready(Runner& runner, const std::optional<LauncherLine>& launcher, const Config& config,
                  const std::string& job, bool agents_of_its_own) {
  // While another program of this job runs, its versions would be taken for ours, and ours would
  // replace them.
  if (agents_of_its_own) {
    BACKSTAY_TRY(runner.clear());
    BACKSTAY_TRY(refuse_served(config, job));
  }
  BACKSTAY_TRY(runner.prepare(launcher));
  if (!agents_of_its_own) BACKSTAY_TRY(runner.clear());
  if (runner.needs_agent()) {
    BACKSTAY_TRY(check_storage_here(config, job));
    BACKSTAY_TRY(refuse_served(config, job));
  }
  return client::refuse_running(config.storage.dir, job);
}

// Slurm starts a requeued job's command again, which would then go back again.
Status check_from(const RunCommandOptions& options) {
  if (options.run.from == 0) return {};
  if (options.run.hosts.requeue)
    return Error(Code::invalid,
                 "--from and --requeue cannot be given together: the command that Slurm starts "
                 "again would go back to that version again");
  if (!options.transparent)
    return Error(
        Code::invalid,
        "--from is for programs under --transparent; one that uses Backstay itself goes on "
        "from an older version once `backstay rm` has removed the newer ones");
  return {};
}

void take_interval(Config& config, double interval_s) {
  if (interval_s <= 0) return;
  config.checkpoint.policy = "interval";
  config.checkpoint.interval_s = interval_s;
}

// The files that it names belong to the versions, and none is captured apart.
Status become_transparent(RunOptions& run, std::optional<LauncherLine>& launcher,
                          const Config& config) {
  BACKSTAY_ASSIGN(auto whole, transparent_command(run, launcher, config));
  run.capture = {};
  run.words = std::move(whole.words);
  launcher = std::move(whole.launcher);
  return {};
}

Result<int> run(RunCommandOptions options) {
  options.run.launch = new_launch();
  options.run.fresh = options.fresh;
  options.run.transparent = options.transparent;
  BACKSTAY_TRY(check_from(options));
  BACKSTAY_ASSIGN(const std::string file, find_config(options.settings.config_file));
  BACKSTAY_ASSIGN(Config config, load(options.settings));
  take_interval(config, options.interval_s);
  auto launcher = read_launcher(options.run.words);
  const Words launched = program_words(options.run.words, launcher);
  const auto program = program_of_line(launched, [&](const std::string& word) {
    const bool found = launcher && launcher->program < options.run.words.size() &&
                       word == launched.front();  // perhaps in the folder alone
    return found || is_program_from(launcher ? launcher->folders.front() : "", word);
  });
  if (program.file.empty() && options.job.empty() && config.job.name.empty())
    if (const auto first = resolve_program(options.run.words.front()); !first.ok())
      return cannot_start(first.error());
  BACKSTAY_ASSIGN(const NamedJob named, name_job(options.job, config, program,
                                                 options.run.words.front(), "backstay run"));
  const std::string& job = named.job;
  const CaptureOptions apart = options.transparent ? CaptureOptions() : options.run.capture;
  auto captured =
      captured_command(apart, config, options.run.words, launcher, named.by_user ? job : "");
  if (!captured.ok() && program_is_at_fault(captured.error()))
    return cannot_start(captured.error());
  BACKSTAY_ASSIGN(auto command, std::move(captured));
  options.run.words = std::move(command.words);
  launcher = std::move(command.launcher);
  set_environment(options, config, named, file);
  const bool agents_of_its_own = needs_agents_of_its_own(config, launcher);
  if (agents_of_its_own) give_agents_of_its_own(config);
  RunOptions run = options.run;
  if (options.transparent) BACKSTAY_TRY(become_transparent(run, launcher, config));
  if (std::filesystem::path(program.file).filename().string().starts_with("python"))
    run.language = Language::python;
  Runner runner(run, config, job);
  BACKSTAY_TRY(make_ready(runner, launcher, config, job, agents_of_its_own));
  // The program would start the agent too; started here, its memory is ready before the first rank
  // asks.
  if (runner.needs_agent())
    if (const auto started = ensure_agent(config, file); !started.ok())
      remark(started.error().message() + "; the program tries again");
  return runner.run();
}

void add_restart_options(CLI::App& app, RunOptions& run) {
  app.add_option("--retries", run.retries, "Restarts after a failure at most")
      ->type_name("N")
      ->check(a_count())
      ->capture_default_str();
  app.add_option("--grace", run.grace_s, "Seconds that a program has to save and end after SIGTERM")
      ->type_name("SECONDS")
      ->check(some_seconds(true))
      ->capture_default_str();
}

void add_host_options(CLI::App& app, RunOptions& run) {
  HostOptions& hosts = run.hosts;
  const char* group = "Several hosts";
  app.add_option(
         "--hosts", hosts.hosts_file,
         "File of hosts, one a line, with slots as mpirun reads them; default: the hosts of "
         "the launcher")
      ->type_name("FILE")
      ->group(group);
  app.add_option("--spares", hosts.spares, "Hold the last N hosts back until another one is lost")
      ->check(a_count())
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app.add_flag("--oversubscribe", hosts.oversubscribe,
               "More ranks than slots, where too few hosts are left")
      ->group(group);
  app.add_option("--remote-shell", hosts.remote_shell,
                 "Command that reaches a host; default: the launcher's, ssh. off: hosts are not "
                 "looked at")
      ->type_name("COMMAND")
      ->group(group);
  app.add_option("--host-timeout", hosts.timeout_s,
                 "Seconds that a host may be silent, and has to answer a new connection then")
      ->type_name("SECONDS")
      ->check(some_seconds(false))
      ->capture_default_str()
      ->group(group);
  app.add_flag("--requeue", run.hosts.requeue,
               "Slurm: after SIGTERM, and where too few nodes are left, put the job back into the "
               "queue")
      ->group(group);
}

void add_ways_to_go_on(CLI::App& app, RunCommandOptions& options) {
  app.add_flag(
      "--take-over", options.run.take_over,
      "End ranks of this job that live on, whose launcher is lost, and go on in their place");
  app.add_flag("--transparent", options.transparent,
               "Save the whole process of a program that does not use Backstay");
  app.add_option("--from", options.run.from,
                 "With --transparent: go on from this version. Newer ones that are there do not "
                 "count for this command, and stay")
      ->type_name("VERSION")
      ->check(a_version())
      ->excludes("--fresh");
  app.add_option("--interval", options.interval_s,
                 "Seconds between checkpoints; default: checkpoint.policy")
      ->type_name("SECONDS")
      ->check(some_seconds(false));
}

constexpr const char* examples =
    "Examples:\n"
    "  backstay run -- mpirun -n 4 ./lj in.lj\n"
    "  backstay run --job lj --retries 10 -- mpiexec -n 64 ./lj in.lj\n"
    "  backstay run --fresh -- mpirun -n 4 ./lj in.lj               from the beginning\n"
    "  backstay run --transparent -- mpirun -n 4 ./app              any program, as it is\n"
    "  backstay run --transparent --from 5 -- ./app                 from an older version\n"
    "  kill -USR1 PID      of `backstay run`: a checkpoint now\n"
    "  kill -TERM PID      a checkpoint, then the end; start the same command to go on\n"
    "  backstay run -- mpirun -n 64 --hostfile hosts ./lj in.lj     goes on without hosts that "
    "die\n"
    "  backstay run --hosts hosts --spares 2 -- mpirun -n 64 ./lj   the last two of the file "
    "only then\n"
    "  backstay run --take-over -- mpirun -n 64 --hostfile hosts ./lj     the launcher's host "
    "was "
    "lost, ranks live on\n"
    "  backstay run --spares 1 --requeue -- srun -n 64 ./lj         in a script for sbatch "
    "(docs/guide/slurm.md)\n"
    "Messages go to stderr (--json: one JSON object a line). Exit code: the program's, 128 + "
    "signal where a\n"
    "signal ended it, 126 or 127 where it cannot be started, 2 wrong usage or configuration, 7 "
    "the "
    "job runs already, 8 a host does not answer";

}  // namespace

Action declare_run(CLI::App& app) {
  auto options = std::make_shared<RunCommandOptions>();
  app.add_option("--job", options->job,
                 "Name of the job; default: job.name, else the file name of the program, or of "
                 "what python, bash and the like run")
      ->type_name("NAME");
  app.add_flag("--fresh", options->fresh,
               "Start afresh: what was saved before this command does not count for it, and stays");
  add_ways_to_go_on(app, *options);
  add_restart_options(app, options->run);
  app.add_flag("--quiet", options->run.quiet, "No summary at the end");
  add_capture_options(app, options->run.capture,
                      ". With --transparent the contents of those that are open belong to the "
                      "versions");
  add_settings(app, options->settings, true);
  add_host_options(app, options->run);
  app.add_option("command", options->run.words, "The program, usually behind a launcher")
      ->required()
      ->type_name("PROGRAM");
  app.positionals_at_end();
  app.footer(examples);
  return [options] {
    options->run.json = options->settings.json;
    return run(*options);
  };
}

}  // namespace backstay::bin
