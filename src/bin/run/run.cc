// `backstay run`: starts a program, forwards signals, restarts it after a failure (runner.h).
#include <fmt/format.h>
#include <poll.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "agent/disk/job_lock.h"
#include "base/clock.h"
#include "base/program.h"
#include "base/program_name.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/agent_start.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/settings.h"
#include "bin/run/restart_policy.h"
#include "bin/run/runner.h"
#include "client/launch.h"
#include "wire/socket.h"

namespace backstay::bin {
namespace {

struct RunCommandOptions {
  Settings settings;
  std::string job;
  bool fresh = false;
  bool take_over = false;
  RunOptions run;
};

struct Named {
  std::string job;
  std::string program;  // "": not known
  bool by_user = true;
};

void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }

void set_or_clear(const char* name, const std::string& value) {
  value.empty() ? (void)::unsetenv(name) : set(name, value);
}

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
void set_environment(const RunCommandOptions& options, const Config& config, const Named& named,
                     const std::string& file) {
  std::error_code ignored;
  set("BACKSTAY_JOB", named.job);
  set_or_clear("BACKSTAY_PROGRAM", named.program);
  if (!named.by_user) set("BACKSTAY_DEFAULT_JOB", named.job);
  if (!options.job.empty()) ::unsetenv("BACKSTAY_DEFAULT_JOB");
  if (options.fresh) set("BACKSTAY_FRESH", fresh_sign(options.run.hosts.requeue));
  set("BACKSTAY_ATTEMPT", "0");
  set("BACKSTAY_LAUNCH", fmt::format("{:08x}", options.run.launch));
  if (!file.empty()) set("BACKSTAY_CONFIG", std::filesystem::absolute(file, ignored).string());
  if (!options.settings.dir.empty()) set("BACKSTAY_DIR", config.storage.dir);
  if (const auto program = client::find_agent_program(config.agent.program); program.ok())
    set("BACKSTAY_AGENT_PROGRAM", *program);
}

// The program behind the launcher, whose options may name programs too.
Words program_words(const Words& words, const std::optional<LauncherLine>& launcher) {
  if (!launcher || launcher->program == words.size()) return words;
  return {words.begin() + static_cast<std::ptrdiff_t>(launcher->program), words.end()};
}

// In Slurm an agent ends with its job step: an agent that other jobs share would end with their
// data.
bool needs_agents_of_its_own(const Config& config, const std::optional<LauncherLine>& launcher) {
  return config.agent.socket.empty() && launcher && launcher->kind == LauncherKind::slurm &&
         !launcher->several_programs && !wire::slurm_socket_path().empty();
}

void give_agents_of_its_own(Config& config) {
  config.agent.socket = wire::slurm_socket_path();
  ::setenv("BACKSTAY_AGENT_SOCKET", config.agent.socket.c_str(), 1);
}

// Refuses a job that an agent serves which our program will not use: that agent's lock would refuse
// each rank.
Status refuse_served(const Config& config, const std::string& job) {
  auto agent = AgentLink::connect(config);
  const auto status = agent.ok() ? agent->status() : Result<nlohmann::ordered_json>(agent.error());
  if (status.ok() && !job_of(*status, job, "").is_null()) return {};
  const Status unlocked = agent::check_unlocked(config.storage.dir, job);
  if (unlocked.ok()) return {};
  return Error(unlocked.error().code(),
               fmt::format("job {} is running here already: {}; wait for its end, or give this one "
                           "another name with --job",
                           job, unlocked.error().message()));
}

// Errors: config (names what a job may be called).
Result<Named> name_job(const RunCommandOptions& options, const Config& config,
                       const ProgramOfLine& program) {
  Named named{options.job.empty() ? config.job.name : options.job, program.name, true};
  if (named.job.empty()) named = {job_name_of(program.name), program.name, false};
  if (named.job.empty() && program.interpreted)
    return Error(Code::invalid,
                 fmt::format("{} runs no script or module here that the job could be named after: "
                             "give the job a name: backstay run --job NAME -- ...",
                             program.file));
  if (named.job.empty() && !program.behind.empty())
    return Error(Code::invalid,
                 fmt::format("{} may run {}, so the job is not named after it: give the job a "
                             "name: backstay run --job NAME -- ...",
                             program.file, program.behind));
  if (named.job.empty() && program.file.empty())
    return Error(
        Code::invalid,
        fmt::format("none of the words behind {} is a program that can be executed here; is "
                    "its path right? If it is on other hosts only, give the job a name: "
                    "backstay run --job NAME -- ...",
                    options.run.words.front()));
  if (named.job.empty())
    return Error(Code::invalid, "give the job a name: backstay run --job NAME -- ...");
  BACKSTAY_TRY(check_job_name(named.job));
  return named;
}

// Returns an exit code; 0: the program can probably be started.
int check_first_word(const std::string& program) {
  if (!find_program(program).empty()) return exit_ok;
  std::error_code unknown;
  const bool there =
      program.find('/') != std::string::npos && std::filesystem::exists(program, unknown);
  remark(program +
         (there ? " cannot be executed; is it a program?" : " was not found; is it in PATH?"));
  return there ? exit_cannot_execute : exit_no_program;
}

Result<int> run(RunCommandOptions options) {
  options.run.launch = new_launch();
  options.run.fresh = options.fresh;
  BACKSTAY_ASSIGN(const std::string file, find_config(options.settings.config_file));
  BACKSTAY_ASSIGN(Config config, load(options.settings));
  const auto launcher = read_launcher(options.run.words);
  const auto program =
      program_of_line(program_words(options.run.words, launcher),
                      [](const std::string& word) { return !find_program(word).empty(); });
  if (program.file.empty() && options.job.empty() && config.job.name.empty())
    if (const int code = check_first_word(options.run.words.front()); code != exit_ok) return code;
  BACKSTAY_ASSIGN(const Named named, name_job(options, config, program));
  const std::string& job = named.job;
  set_environment(options, config, named, file);
  const bool agents_of_its_own = needs_agents_of_its_own(config, launcher);
  if (agents_of_its_own) give_agents_of_its_own(config);
  RunOptions run = options.run;
  if (std::filesystem::path(program.file).filename().string().starts_with("python"))
    run.language = Language::python;
  Runner runner(run, config, job);
  // While another program of this job runs, its versions would be taken for ours, and ours would
  // replace them.
  if (agents_of_its_own) {
    BACKSTAY_TRY(runner.clear(options.take_over));
    BACKSTAY_TRY(refuse_served(config, job));
  }
  BACKSTAY_TRY(runner.prepare(launcher));
  if (!agents_of_its_own) BACKSTAY_TRY(runner.clear(options.take_over));
  if (runner.needs_agent()) BACKSTAY_TRY(refuse_served(config, job));
  // The program would start the agent too; started here, its memory is ready before the first rank
  // asks.
  if (runner.needs_agent())
    if (const auto started = ensure_agent(config, file); !started.ok())
      remark(started.error().message() + "; the program tries again");
  return runner.run();
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

}  // namespace

Action declare_run(CLI::App& app) {
  auto options = std::make_shared<RunCommandOptions>();
  app.add_option("--job", options->job,
                 "Name of the job; default: job.name, else the file name of the program, or of "
                 "what python, bash and the like run")
      ->type_name("NAME");
  app.add_flag("--fresh", options->fresh,
               "Start afresh: what was saved before this command does not count for it, and stays");
  app.add_flag(
      "--take-over", options->take_over,
      "End ranks of this job that live on, whose launcher is lost, and go on in their place");
  app.add_option("--retries", options->run.retries, "Restarts after a failure at most")
      ->type_name("N")
      ->check(a_count())
      ->capture_default_str();
  app.add_option("--grace", options->run.grace_s,
                 "Seconds that a program has to save and end after SIGTERM")
      ->type_name("SECONDS")
      ->check(some_seconds(true))
      ->capture_default_str();
  add_settings(app, options->settings, true);
  add_host_options(app, options->run);
  app.add_option("command", options->run.words, "The program, usually behind a launcher")
      ->required()
      ->type_name("PROGRAM");
  app.positionals_at_end();
  app.footer(
      "Examples:\n"
      "  backstay run -- mpirun -n 4 ./lj in.lj\n"
      "  backstay run --job lj --retries 10 -- mpiexec -n 64 ./lj in.lj\n"
      "  backstay run --fresh -- mpirun -n 4 ./lj in.lj               from the beginning\n"
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
      "job runs already, 8 a host does not answer");
  return [options] {
    options->run.json = options->settings.json;
    return run(*options);
  };
}

}  // namespace backstay::bin
