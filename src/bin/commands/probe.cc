// `backstay probe`: measures once the speeds with which later commands compare (top, plan).
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/machine.h"
#include "bin/commands/measure.h"
#include "bin/commands/probe_file.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/settings.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

struct ProbeOptions {
  Settings settings;
  unsigned processes = 0;
  std::uint64_t size_mib = 1024;
  bool show = false;
};

// Processes that ran or waited for the disk in the last minute, on average; 0: not known.
double load_of_machine() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

Result<Json> measure(const Config& config, const ProbeOptions& options) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned processes = options.processes ? options.processes : std::max(4u, cores);
  // Twice per process; a quarter of the memory at most.
  const std::uint64_t room = memory_bytes() / 8 / processes;
  const std::uint64_t each = std::min<std::uint64_t>(std::uint64_t{256} << 20, room);
  const std::uint64_t bytes = options.size_mib << 20;
  const double load = load_of_machine();
  Progress progress("", 4 * bytes);  // memory and network count as much as a pass over the disk
  progress.phase("memory");
  BACKSTAY_ASSIGN(const MemorySpeed memory, measure_memory(processes, each));
  progress.add(bytes);
  progress.phase("disk " + config.storage.dir);
  const auto measured = measure_disk(config, config.storage.dir, bytes, progress);
  if (!measured.ok()) return measured.error().context("measure the disk of " + config.storage.dir);
  const DiskSpeed disk = *measured;
  progress.phase("network");
  BACKSTAY_ASSIGN(const double loopback, measure_loopback(1));
  return Json{{"release", BACKSTAY_VERSION},
              {"time_ns", system_clock().wall_ns()},
              {"host", host_name()},
              {"cores", cores},
              {"load", load},
              {"memory_bytes", memory_bytes()},
              {"memory",
               {{"processes", memory.processes},
                {"bytes_each", memory.bytes_each},
                {"copy_bytes_per_s", memory.copy_bytes_per_s}}},
              {"disk",
               {{"dir", config.storage.dir},
                {"bytes", disk.bytes},
                {"write_bytes_per_s", disk.write_bytes_per_s},
                {"read_bytes_per_s", disk.read_bytes_per_s},
                {"direct", disk.direct},
                {"io_uring", disk.io_uring}}},
              {"network", {{"scope", "loopback only"}, {"bytes_per_s", loopback}}}};
}

void print_text(const Json& result) {
  const Json &memory = result["memory"], &disk = result["disk"], &network = result["network"];
  Table table({"WHAT", ">SPEED", "HOW"});
  table.add({"memory copy", rate_text(memory["copy_bytes_per_s"]),
             fmt::format("{} processes at once, {} each", memory["processes"].get<unsigned>(),
                         bytes_text(memory["bytes_each"]))});
  const std::string how = fmt::format(
      "{} in {}{}{}", bytes_text(disk["bytes"]), disk["dir"].get<std::string>(),
      disk["direct"].get<bool>() ? ", around the page cache" : ", through the page cache",
      disk["io_uring"].get<bool>() ? ", io_uring" : "");
  table.add({"disk write", rate_text(disk["write_bytes_per_s"]), how});
  table.add({"disk read", rate_text(disk["read_bytes_per_s"]), how});
  table.add({"network", rate_text(network["bytes_per_s"]), "loopback only, TCP"});
  if (result.contains("load"))
    table.add({"load", fmt::format("{:.2f}", result["load"].get<double>()),
               fmt::format("on {} before; what else runs makes these speeds lower",
                           count_text(result.value("cores", 1u), "core"))});
  fmt::print("{} ({})\n{}", result.value("host", ""),
             time_text(result.value("time_ns", std::uint64_t{0})), table.text());
}

Result<int> probe(const ProbeOptions& options) {
  BACKSTAY_ASSIGN(const Config config, load(options.settings));
  Json result;
  if (options.show) {
    BACKSTAY_ASSIGN(result, read_probe());
  } else {
    BACKSTAY_TRY(prepare_probe());
    BACKSTAY_ASSIGN(result, measure(config, options));
    BACKSTAY_TRY(write_probe(result));
  }
  if (options.settings.json)
    print_json(result);
  else
    print_text(result);
  if (!options.show) remark("kept in " + probe_path());
  return exit_ok;
}

}  // namespace

Action declare_probe(CLI::App& app) {
  auto options = std::make_shared<ProbeOptions>();
  app.add_option("--processes", options->processes,
                 "Processes that copy memory at once, 1 to 256; default: one a core, at least 4")
      ->type_name("N")
      ->check(CLI::Range(1, 256).description(""));
  app.add_option("--size-mib", options->size_mib, "How much to write and read")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 20).description(""))
      ->capture_default_str();
  app.add_flag("--show", options->show, "Show the last result, measure nothing");
  add_settings(app, options->settings, true);
  app.footer(
      "Run it on a quiet machine; the result is kept in $XDG_CACHE_HOME/backstay/probe.json.\n"
      "Examples:\n"
      "  backstay probe\n"
      "  backstay probe --show --json\n"
      "Exit codes: 0 ok, 1 could not be measured, 3 --show and there is no result");
  return [options] { return probe(*options); };
}

}  // namespace backstay::bin
