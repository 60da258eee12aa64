// `backstay top`: the agent's status, live. On a terminal a screen, else one line an interval.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>

#include "base/clock.h"
#include "bin/commands/probe_file.h"
#include "bin/commands/screen.h"
#include "bin/commands/status_text.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/progress.h"
#include "bin/parts/settings.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

struct TopOptions {
  Settings settings;
  double interval_s = 1;
  std::uint64_t count = 0;
};

// Asks the agent for its status. Connects again if the last connection broke: agents come and go.
class Watch {
 public:
  explicit Watch(Config config)
      : config_(std::move(config)), limit_(probed_disk_write(config_.storage.dir)) {}

  Result<Json> look() {
    if (!agent_) {
      BACKSTAY_ASSIGN(AgentLink fresh, AgentLink::connect(config_));
      agent_.emplace(std::move(fresh));
      last_ns_ = 0;
    }
    auto status = agent_->ask(wire::Status{});
    if (!status.ok()) {
      agent_.reset();
      return status.error();
    }
    take_rates(*status);
    return status;
  }
  const Rates& rates() const { return rates_; }

 private:
  void take_rates(const Json& status) {
    const Json disk = status.value("disk", Json::object());
    const auto written = disk.value("written_bytes", std::uint64_t{0});
    const auto read = disk.value("read_bytes", std::uint64_t{0});
    const std::uint64_t now = system_clock().monotonic_ns();
    rates_ = {0, 0, limit_};
    if (last_ns_ != 0 && now > last_ns_ && written >= written_ && read >= read_) {
      const double seconds = static_cast<double>(now - last_ns_) * 1e-9;
      rates_.write_per_s = static_cast<double>(written - written_) / seconds;
      rates_.read_per_s = static_cast<double>(read - read_) / seconds;
    }
    last_ns_ = now, written_ = written, read_ = read;
  }

  const Config config_;
  const double limit_;
  std::optional<AgentLink> agent_;
  std::uint64_t last_ns_ = 0, written_ = 0, read_ = 0;
  Rates rates_;
};

std::vector<std::string> screen_lines(const Result<Json>& status, const Rates& rates) {
  std::vector<std::string> lines;
  if (!status.ok()) return {"backstay top", "", status.error().message(), "", "q quit"};
  lines.push_back(fmt::format("backstay top  agent pid {}  up {}  memory {}",
                              status->value("pid", 0),
                              duration_text(status->value("uptime_s", 0.0)),
                              bytes_text(status->value("resident_bytes", std::uint64_t{0}))));
  for (std::string& line : pool_lines(*status)) lines.push_back(std::move(line));
  for (std::string& line : disk_lines(rates)) lines.push_back(std::move(line));
  lines.emplace_back();
  std::vector<std::string> jobs = job_lines(*status, 6);
  if (jobs.empty()) jobs.emplace_back("no job is connected");
  for (std::string& line : jobs) lines.push_back(std::move(line));
  lines.emplace_back();
  lines.emplace_back("q quit");
  return lines;
}

Json json_line(const Result<Json>& status, const Rates& rates) {
  if (!status.ok())
    return {{"error",
             {{"code", code_name(status.error().code())}, {"message", status.error().message()}}}};
  Json line = *status;
  line["rates"] = {{"write_bytes_per_s", rates.write_per_s},
                   {"read_bytes_per_s", rates.read_per_s},
                   {"disk_write_limit_bytes_per_s", rates.disk_write_limit_per_s}};
  return line;
}

void print_line(const Result<Json>& status, const Rates& rates, bool json,
                std::set<std::string>& said) {
  if (json) {
    fmt::print("{}\n",
               json_line(status, rates).dump(-1, ' ', false, Json::error_handler_t::replace));
  } else if (!status.ok()) {
    fmt::print("{}\n", status.error().message());
  } else {
    fmt::print("{}\n{}\n", fmt::join(pool_lines(*status), "\n"), speed_text(rates));
    for (const std::string& line : job_lines(*status, 3, &said)) fmt::print("  {}\n", line);
  }
  std::fflush(stdout);
}

// Plain lines, for logs and pipes. Ends after `count` looks, or when the agent is gone for good.
Result<int> follow(Watch& watch, const TopOptions& options) {
  std::set<std::string> said;  // notes
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
    const auto status = watch.look();
    if (!status.ok() && i == 0) return status.error();
    print_line(status, watch.rates(), options.settings.json, said);
    if (!status.ok()) return exit_agent;
  }
  return exit_ok;
}

Result<int> watch_screen(Watch& watch, const TopOptions& options) {
  const Screen screen;
  for (std::uint64_t i = 0; options.count == 0 || i < options.count; ++i) {
    const auto status = watch.look();
    screen.show(screen_lines(status, watch.rates()));
    if (screen.key(options.interval_s) == 'q') break;
  }
  return exit_ok;
}

Result<int> top(const TopOptions& options) {
  BACKSTAY_ASSIGN(const Config config, load(options.settings));
  Watch watch(config);
  const bool full =
      !options.settings.json && is_terminal(STDOUT_FILENO) && is_terminal(STDIN_FILENO);
  return full ? watch_screen(watch, options) : follow(watch, options);
}

}  // namespace

Action declare_top(CLI::App& app) {
  auto options = std::make_shared<TopOptions>();
  app.add_option("--interval", options->interval_s, "Seconds between two looks, 0.05 to 3600")
      ->type_name("SECONDS")
      ->check(seconds_between(0.05, 3600))
      ->capture_default_str();
  app.add_option("--count", options->count, "End after this many looks; 0: never")
      ->type_name("N")
      ->check(a_count());
  add_settings(app, options->settings, true);
  app.footer(
      "Examples:\n"
      "  backstay top                        q quits\n"
      "  backstay top --count 10 > log       one look a second, as lines\n"
      "  backstay top --json --interval 5    one JSON document a line\n"
      "Exit codes: 0 ok, 5 no agent runs");
  return [options] { return top(*options); };
}

}  // namespace backstay::bin
