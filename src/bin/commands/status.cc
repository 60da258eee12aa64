// `backstay status`: the state of this node's agent, and of the other agents of its jobs, once.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "bin/commands/restart_room.h"
#include "bin/commands/status_text.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/settings.h"

namespace backstay::bin {
namespace {

// Adds free space, which the agent itself does not ask for, as its main loop must not wait for a
// disk.
void add_rooms(nlohmann::ordered_json& status) {
  const auto jobs = status.find("jobs");
  if (jobs == status.end() || !jobs->is_array()) return;
  for (auto& job : *jobs) {
    if (!job.is_object() || !job.contains("dir") || !job.contains("job")) continue;
    if (job.value("finished", false)) continue;
    const std::string dir = job.value("dir", "");
    const auto room = restart_room_now(dir, job.value("job", ""));
    job["restart_room"] = room_json(room);
    if (const std::string said = warning(room, dir); !said.empty()) job["notes"].push_back(said);
  }
}

void print_status(const nlohmann::ordered_json& status) {
  const auto disk = status.value("disk", nlohmann::ordered_json::object());
  fmt::print("agent {} pid {}, up {}, {}\n", status.value("release", "?"), status.value("pid", 0),
             duration_text(status.value("uptime_s", 0.0)), status.value("socket", "?"));
  fmt::print("memory {}\n", bytes_text(status.value("resident_bytes", std::uint64_t{0})));
  fmt::print("{}\n", fmt::join(pool_lines(status), "\n"));
  fmt::print("disk written {}, read {}\n  io_uring {}, O_DIRECT {}, registered buffers {}\n",
             bytes_text(disk.value("written_bytes", std::uint64_t{0})),
             bytes_text(disk.value("read_bytes", std::uint64_t{0})),
             disk.value("io_uring", false) ? "yes" : "no",
             disk.value("direct", false) ? "yes" : "no",
             disk.value("registered_buffers", false) ? "yes" : "no");
  if (const std::string why = disk.value("why_not", ""); !why.empty())
    fmt::print("  because: {}\n", why);
  const auto metrics = status.value("metrics", nlohmann::ordered_json::object());
  if (const std::string at = metrics.value("address", ""); !at.empty())
    fmt::print("metrics http://{}/metrics\n", at);
  if (const std::string why = metrics.value("error", ""); !why.empty()) {
    for (const std::string& line : wrapped("no metrics: " + why, 0, 80)) fmt::print("{}\n", line);
  }
  const auto lines = job_lines(status, 8);
  for (const std::string& line : lines) fmt::print("{}\n", line);
  if (lines.empty()) fmt::print("no job is known to it\n");
}

}  // namespace

Action declare_status(CLI::App& app) {
  auto settings = std::make_shared<Settings>();
  add_settings(app, *settings, false);
  app.footer(
      "Examples:\n"
      "  backstay status\n"
      "  backstay status --json | jq '.jobs[].versions'\n"
      "Exit codes: 0 ok, 5 no agent runs");
  return [settings]() -> Result<int> {
    BACKSTAY_ASSIGN(const Config config, load(*settings));
    BACKSTAY_ASSIGN(nlohmann::ordered_json status, agent_status(config));
    add_rooms(status);
    if (settings->json)
      print_json(status);
    else
      print_status(status);
    return exit_ok;
  };
}

}  // namespace backstay::bin
