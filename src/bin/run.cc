// `backstay run`: starts a program, forwards signals, restarts it after a failure.
//
// Signals. SIGUSR1 asks the job for a checkpoint through the agent; SIGTERM and SIGHUP ask for a
// checkpoint and a stop and give the program --grace seconds to end by itself, then it gets
// SIGTERM twice and SIGKILL. SIGINT goes to the launcher. Where no agent knows the job, the signal
// itself goes to the launcher: Open MPI's mpirun passes SIGUSR1 and SIGTERM on to the ranks,
// MPICH's mpiexec ends them at SIGTERM. After SIGINT, SIGTERM or SIGHUP there is no restart.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/program.h"
#include "bin/agent_link.h"
#include "bin/agent_start.h"
#include "bin/child.h"
#include "bin/command.h"
#include "bin/exit_code.h"
#include "bin/print.h"
#include "bin/restart_policy.h"
#include "bin/settings.h"
#include "bin/stored.h"
#include "client/launch.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

constexpr int exit_cannot_execute = 126;
constexpr int exit_no_program = 127;

struct Options {
  Settings settings;
  std::string job;
  unsigned retries = 3;
  double grace_s = 60;
  std::vector<std::string> words;
};

// The newest version that a restart could take.
struct Newest {
  VersionNumber version = 0;
  std::uint64_t captured_ns = 0;
  bool on_disk = false;
};

Newest newest_on_disk(const Config& config, const std::string& job) {
  Newest newest;
  auto stored = Stored::open(config);
  if (!stored.ok()) return newest;
  const auto version = stored->version(job, 0);
  if (version.ok()) newest = {version->version, version->record.captured_ns, true};
  return newest;
}

Newest newest_version(const Config& config, const std::string& job) {
  Newest newest = newest_on_disk(config, job);
  auto agent = AgentLink::connect(config);
  if (!agent.ok()) return newest;
  const auto status = agent->status();
  if (!status.ok()) return newest;
  for (const Json& version : versions_of(*status, job, config.storage.dir)) {
    const auto number = version.value("version", VersionNumber{0});
    if (version.value("level", "") == "captured" && version.value("error", "").empty() &&
        number > newest.version)
      newest = {number, version.value("captured_ns", std::uint64_t{0}), false};
  }
  return newest;
}

std::string text_of(const Newest& newest) {
  if (newest.version == 0) return "from the beginning: no version was saved yet";
  return fmt::format("from version {}, captured {} ({})", newest.version,
                     age_text(newest.captured_ns),
                     newest.on_disk ? "on the disk" : "in the agent's memory");
}

class Runner {
 public:
  Runner(const Options& options, Config config, std::string job)
      : options_(options),
        config_(std::move(config)),
        job_(std::move(job)),
        policy_(options.retries) {}

  Result<int> run() {
    for (;;) {
      if (const Status started = child_.start(options_.words); !started.ok())
        return cannot_start(started.error());
      watch();
      const int code = child_.end()->exit_code;
      if (const int count = child_.end_leftovers(); count > 0)
        say("leftovers", fmt::format("ended {} that the launcher left behind",
                                     count_text(static_cast<std::uint64_t>(count), "process")));
      if (code == 0 || stopping_) return finish(code);
      if (!try_again(code)) return finish(code);
    }
  }

 private:
  enum class Stage { running, asked, terminated, terminated_again, killed };

  // Messages go to stderr: stdout belongs to the program.
  void say(const char* event, const std::string& text, const Json& more = Json::object()) const {
    if (!options_.settings.json) {
      fmt::print(stderr, "backstay run: {}\n", text);
      return;
    }
    Json line{{"event", event}, {"job", job_}, {"text", text}};
    line.update(more);
    fmt::print(stderr, "{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace));
  }

  int cannot_start(const Error& error) const {
    const bool missing = error.code() == Code::not_found;
    say("cannot_start", error.message() + (missing ? "; is it in PATH?" : "; is it a program?"));
    return error.code() == Code::not_found ? exit_no_program : exit_cannot_execute;
  }

  void watch() {
    stage_ = Stage::running;
    for (;;) {
      const int signal = child_.wait(stage_ == Stage::running ? -1.0 : patience_s());
      if (signal == SIGCHLD) return;
      if (signal == SIGUSR1)
        ask_for_checkpoint();
      else if (signal == SIGINT)
        interrupt();
      else if (signal == SIGTERM || signal == SIGHUP)
        stop();
      else
        escalate();
    }
  }

  // How long the present stage may take.
  double patience_s() const { return stage_ == Stage::asked ? options_.grace_s : 5; }

  bool ask(bool stop) const {
    auto agent = AgentLink::connect(config_);
    return agent.ok() && agent->request(job_, stop).ok();
  }

  void ask_for_checkpoint() const {
    if (ask(false)) return say("checkpoint", "asked the program for a checkpoint");
    say("forward", "no agent knows this job yet; SIGUSR1 goes to the launcher");
    child_.send(SIGUSR1);
  }

  void interrupt() {
    if (stopping_) return escalate();
    stopping_ = true;
    stage_ = Stage::terminated;
    child_.send(SIGINT);
  }

  void stop() {
    if (stage_ != Stage::running) return escalate();
    stopping_ = true;
    if (ask(true)) {
      stage_ = Stage::asked;
      return say("stop", fmt::format("asked the program to save and end; it has {}",
                                     duration_text(options_.grace_s)));
    }
    escalate();
  }

  void escalate() {
    if (stage_ == Stage::running || stage_ == Stage::asked) {
      stage_ = Stage::terminated;
      child_.send(SIGTERM);
    } else if (stage_ == Stage::terminated) {
      stage_ = Stage::terminated_again;
      child_.send(SIGTERM);
    } else {
      stage_ = Stage::killed;
      say("kill", "the launcher did not end; killed");
      child_.send(SIGKILL);
    }
  }

  bool try_again(int code) {
    const Newest newest = newest_version(config_, job_);
    const auto decision = policy_.after_failure(newest.version);
    const std::string what =
        code > 128 ? fmt::format("failed (exit code {}, as for signal {})", code, code - 128)
                   : fmt::format("failed (exit code {})", code);
    const Json more{
        {"exit_code", code}, {"restarts", policy_.restarts()}, {"version", newest.version}};
    if (decision == RestartPolicy::Decision::restart) {
      say("restart",
          fmt::format("{}; restart {} of {} {}", what, policy_.restarts(), options_.retries,
                      text_of(newest)),
          more);
      ::setenv("BACKSTAY_ATTEMPT", std::to_string(policy_.restarts()).c_str(), 1);
      return true;
    }
    if (decision == RestartPolicy::Decision::crash_loop)
      say("crash_loop",
          fmt::format("{}; giving up: the last two restarts failed before they saved a new "
                      "version. Look at "
                      "the program's own messages; it would start {}",
                      what, text_of(newest)),
          more);
    else
      say("gave_up",
          fmt::format("{}; giving up after {}. The same command starts {}", what,
                      count_text(policy_.restarts(), "restart"), text_of(newest)),
          more);
    return false;
  }

  int finish(int code) const {
    if (stopping_)
      say("stopped", fmt::format("stopped; the same command starts {}",
                                 text_of(newest_version(config_, job_))));
    if (options_.settings.json || (policy_.restarts() > 0 && code == 0))
      say("end",
          fmt::format("ended with exit code {} after {}", code,
                      count_text(policy_.restarts(), "restart")),
          {{"exit_code", code}, {"restarts", policy_.restarts()}});
    return code;
  }

  const Options& options_;
  const Config config_;
  const std::string job_;
  RestartPolicy policy_;
  Child child_;
  Stage stage_ = Stage::running;
  bool stopping_ = false;
};

// What the ranks' libraries read. Launchers pass the environment on to ranks of this node.
void set_environment(const Options& options, const Config& config, const std::string& job,
                     const std::string& file) {
  std::error_code ignored;
  const auto set = [](const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), 1);
  };
  set("BACKSTAY_JOB", job);
  set("BACKSTAY_ATTEMPT", "0");
  if (!file.empty()) set("BACKSTAY_CONFIG", std::filesystem::absolute(file, ignored).string());
  if (!options.settings.dir.empty()) set("BACKSTAY_DIR", config.storage.dir);
  if (const auto program = client::find_agent_program(config.agent.program); program.ok())
    set("BACKSTAY_AGENT_PROGRAM", *program);
}

Result<int> run(const Options& options) {
  BACKSTAY_ASSIGN(const std::string file, find_config(options.settings.config_file));
  BACKSTAY_ASSIGN(const Config config, load(options.settings));
  std::string job = options.job.empty() ? config.job.name : options.job;
  if (job.empty()) job = job_name_of(options.words);
  if (job.empty() && find_program(options.words.front()).empty()) {
    const std::string& program = options.words.front();
    std::error_code unknown;
    const bool there =
        program.find('/') != std::string::npos && std::filesystem::exists(program, unknown);
    remark(program +
           (there ? " cannot be executed; is it a program?" : " was not found; is it in PATH?"));
    return there ? exit_cannot_execute : exit_no_program;
  }
  if (job.empty())
    return Error(Code::invalid, "give the job a name: backstay run --job NAME -- ...");
  BACKSTAY_TRY(check_job_name(job));
  set_environment(options, config, job, file);
  // The program would start it too; now its memory is ready before the first rank asks.
  if (const auto started = ensure_agent(config, file); !started.ok())
    remark(started.error().message() + "; the program tries again");
  return Runner(options, config, job).run();
}

}  // namespace

Action declare_run(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("--job", options->job,
                 "Name of the job; default: job.name, else the program's file name")
      ->type_name("NAME");
  app.add_option("--retries", options->retries, "Restarts after a failure at most")
      ->capture_default_str();
  app.add_option("--grace", options->grace_s,
                 "Seconds that a program has to save and end after SIGTERM")
      ->check(some_seconds(true))
      ->capture_default_str();
  add_settings(app, options->settings, true);
  app.add_option("command", options->words, "The program, usually behind a launcher")
      ->required()
      ->type_name("PROGRAM");
  app.positionals_at_end();
  app.footer(
      "Examples:\n"
      "  backstay run -- mpirun -n 4 ./lj in.lj\n"
      "  backstay run --job lj --retries 10 -- mpiexec -n 64 ./lj in.lj\n"
      "  kill -USR1 PID      of `backstay run`: a checkpoint now\n"
      "  kill -TERM PID      a checkpoint, then the end; start the same command to go on\n"
      "Messages go to stderr (--json: one JSON object a line). Exit code: the program's, 128 + "
      "signal where a\n"
      "signal ended it, 126 or 127 where it cannot be started, 2 wrong usage or configuration");
  return [options] { return run(*options); };
}

}  // namespace backstay::bin
