// `backstay agent start|stop|status`, and for `backstay run` on other hosts attend|ranks and what
// file_copies.h has
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "bin/commands/agent_process.h"
#include "bin/commands/file_copies.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/agent_start.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/progress.h"
#include "bin/parts/settings.h"
#include "bin/run/ranks_here.h"
#include "bin/run/slurm.h"
#include "wire/socket.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

struct AgentOptions {
  Settings settings;
  std::string what;
  bool now = false;
  int pid = 0;  // 0: the one at the socket
  double timeout_s = 120;
  double requeue_after_s = 0;
  std::string job;
  std::string run;
  std::string host;
  std::vector<std::string> of;
};

Result<int> start(const Config& config, const AgentOptions& options) {
  BACKSTAY_ASSIGN(const std::string file, find_config(options.settings.config_file));
  BACKSTAY_ASSIGN(const RunningAgent agent, ensure_agent(config, file));
  if (options.settings.json)
    print_json({{"running", true}, {"started", agent.fresh}, {"socket", agent.socket}});
  else
    fmt::print(
        "{} at {}\n",
        agent.fresh ? fmt::format("agent pid {} listens", agent.pid) : "an agent listens already",
        agent.socket);
  return exit_ok;
}

Status end_agent_at_socket(const Config& config, const AgentOptions& options) {
  BACKSTAY_ASSIGN(AgentLink agent, AgentLink::connect(config, options.timeout_s));
  BACKSTAY_TRY(agent.tell(wire::Shutdown{!options.now}));
  return agent.wait_until_gone(options.timeout_s);
}

// Lines of stdin until its end, or until SIGTERM, which Slurm sends to all tasks of a cancelled
// job: a task that stayed would hold the job. Reads from the beginning, so that no line is lost
// while an agent starts.
class Lines {
 public:
  // `on_silence` is called after each silence of that length.
  Lines(double silence_s, std::function<void()> on_silence)
      : silence_s_(silence_s), on_silence_(std::move(on_silence)) {
    sigset_t term{};
    ::sigemptyset(&term);
    ::sigaddset(&term, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &term, &while_waiting_);
    ::sigdelset(&while_waiting_, SIGTERM);
    struct sigaction nothing {};  // the mask of ppoll() is enough
    nothing.sa_handler = [](int) {};
    ::sigaction(SIGTERM, &nothing, nullptr);
  }

  std::optional<std::string> next() {
    while (text_.find('\n') == std::string::npos)
      if (!read_more()) return std::nullopt;
    const std::string line = text_.substr(0, text_.find('\n'));
    text_.erase(0, line.size() + 1);
    return line;
  }

 private:
  bool read_more() {
    pollfd look{STDIN_FILENO, POLLIN, 0};
    std::array<char, 256> some{};
    const timespec silence = as_timespec(silence_s_);
    int ready = 0;
    while ((ready = ::ppoll(&look, 1, silence_s_ > 0 ? &silence : nullptr, &while_waiting_)) == 0)
      on_silence_();
    if (ready < 0) return false;
    const ssize_t got = ::read(STDIN_FILENO, some.data(), some.size());
    if (got <= 0) return false;
    text_.append(some.data(), static_cast<std::size_t>(got));
    return true;
  }

  static timespec as_timespec(double seconds) {
    const auto whole = static_cast<time_t>(seconds);
    return {whole, static_cast<long>((seconds - static_cast<double>(whole)) * 1e9)};
  }

  const double silence_s_;  // 0: no limit
  const std::function<void()> on_silence_;
  sigset_t while_waiting_{};
  std::string text_;
};

// In a job step of `backstay run` (host_line.h): the agent lives as long as signs of life are asked
// for. An agent that was there before belongs to another job, and stays.
Result<int> attend(const Config& config, const AgentOptions& options) {
  BACKSTAY_ASSIGN(const std::string file, find_config(options.settings.config_file));
  // `backstay run` may have been lost with the node of the job's script; then only this process can
  // put the job back into the queue.
  Lines questions(options.requeue_after_s, [] {
    if (slurm_lost_first_node()) (void)slurm_requeue();
  });
  const auto agent = ensure_agent(config, file);
  if (!agent.ok()) remark(agent.error().message() + "; the program tries again");
  std::array<char, 256> own{};
  ::gethostname(own.data(), own.size() - 1);
  const char* node = std::getenv("SLURMD_NODENAME");
  const std::string name = node != nullptr && *node != '\0' ? node : own.data();
  while (const auto number = questions.next()) {
    fmt::print("backstay-host {} {}\n", name, *number);
    std::fflush(stdout);
  }
  // Our last word is sent in any case, as the other end may wait for it.
  const Status ended = agent.ok() && agent->fresh ? end_agent_at_socket(config, options) : Status();
  fmt::print("backstay-host {} 0\n", name);
  std::fflush(stdout);
  if (!ended.ok()) return ended.error();
  return exit_ok;
}

Result<int> stop(const Config& config, const AgentOptions& options) {
  const Progress progress("the agent brings versions to the disk and ends", 0);
  BACKSTAY_TRY(options.pid != 0 ? end_agent_process(options.pid, options.now, options.timeout_s)
                                : end_agent_at_socket(config, options));
  if (options.settings.json)
    print_json(
        {{"running", false}, {"drained", options.pid != 0 ? Json(nullptr) : Json(!options.now)}});
  else
    fmt::print("the agent has ended\n");
  return exit_ok;
}

Result<int> print_status(const Config& config, const AgentOptions& options) {
  auto agent = AgentLink::connect(config);
  if (!agent.ok() && agent.error().code() == Code::agent_lost && options.settings.json) {
    print_json({{"running", false}, {"socket", wire::socket_path(config.agent.socket)}});
    return exit_agent;
  }
  if (!agent.ok()) return agent.error();
  BACKSTAY_ASSIGN(const Json status, agent->ask(wire::Status{}));
  if (options.settings.json)
    print_json({{"running", true},
                {"socket", wire::socket_path(config.agent.socket)},
                {"pid", status.value("pid", 0)},
                {"release", status.value("release", "")}});
  else
    fmt::print("agent {} pid {} runs at {}\n", status.value("release", "?"), status.value("pid", 0),
               wire::socket_path(config.agent.socket));
  return exit_ok;
}

// For `backstay run` on another host (take_over.h).
Result<int> ranks(const Config& config, const AgentOptions& options) {
  BACKSTAY_ASSIGN(const std::string job, job_or_configured(options.job, config));
  if (options.run.empty()) {
    print_json(ranks_here(config, job));
    return exit_ok;
  }
  BACKSTAY_ASSIGN(const Json ended, end_ranks_here(config, job, options.run));
  print_json(ended);
  return exit_ok;
}

Result<int> act(const AgentOptions& options) {
  BACKSTAY_ASSIGN(const Config config, load(options.settings));
  if (options.what == "give-copies") return give_copies(config, options.job);
  if (options.what == "keep-copies") return keep_copies(config, options.host);
  if (options.what == "copies") return list_copies(config, options.job);
  if (options.what == "bring-copies") return bring_copies(config, options.job, options.of);
  if (options.what == "start") return start(config, options);
  if (options.what == "stop") return stop(config, options);
  if (options.what == "attend") return attend(config, options);
  if (options.what == "ranks") return ranks(config, options);
  return print_status(config, options);
}

}  // namespace

Action declare_agent(CLI::App& app) {
  auto options = std::make_shared<AgentOptions>();
  app.add_option("what", options->what, "start, stop or status")
      ->type_name("WHAT")
      ->required()
      ->check(CLI::IsMember({"start", "stop", "status", "attend", "ranks", "give-copies",
                             "keep-copies", "copies", "bring-copies"})
                  .description(""));
  app.add_flag("--now", options->now, "stop: give up what is not on the disk yet");
  app.add_option("--pid", options->pid, "stop: this process, an agent whose socket has gone")
      ->type_name("PID")
      ->check(CLI::PositiveNumber.description(""));
  app.add_option("--timeout", options->timeout_s, "stop: seconds to wait for the end")
      ->type_name("SECONDS")
      ->check(some_seconds(false))
      ->capture_default_str();
  app.add_option("--requeue-after", options->requeue_after_s)
      ->check(some_seconds(true))
      ->group("");                                     // attend
  app.add_option("--job", options->job)->group("");    // ranks, copies
  app.add_option("--end", options->run)->group("");    // ranks: of this run
  app.add_option("--host", options->host)->group("");  // keep-copies: whose
  app.add_option("--of", options->of)->group("");      // bring-copies: JOB=VERSION
  add_settings(app, options->settings, false);
  app.footer(
      "Programs start an agent by themselves; this is for looking and for tidying up.\n"
      "Examples:\n"
      "  backstay agent start\n"
      "  backstay agent stop          captured versions reach the disk first\n"
      "Exit codes: 0 ok, 5 none runs, answers, or can be started, 6 it has not ended in time");
  return [options] { return act(*options); };
}

}  // namespace backstay::bin
