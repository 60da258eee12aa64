// `backstay checkpoint JOB`: asks the job through its agent; an unmodified program is saved soon,
// another one at its next backstay_due(). --wait asks the agent to answer once a newer version is
// on the disk.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "bin/parts/agent_link.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/progress.h"
#include "bin/parts/settings.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

struct CheckpointOptions {
  Settings settings;
  std::string job;
  bool stop = false;
  bool wait = false;
  Level level = Level::local;  // for --wait
  double timeout_s = 600;
};

std::uint64_t newest_of(const std::vector<Json>& versions) {
  std::uint64_t newest = 0;
  for (const Json& version : versions)
    newest = std::max(newest, version.value("version", std::uint64_t{0}));
  return newest;
}

Result<int> checkpoint(const CheckpointOptions& options) {
  BACKSTAY_ASSIGN(const Config config, load(options.settings));
  BACKSTAY_ASSIGN(const std::string job, job_or_configured(options.job, config));
  BACKSTAY_ASSIGN(AgentLink agent, AgentLink::connect(config, options.timeout_s));
  BACKSTAY_ASSIGN(const Json before, agent.ask(wire::Status{}));
  BACKSTAY_TRY(agent.tell(wire::Request{job, options.stop}));
  std::optional<Json> version;
  if (options.wait) {
    // The program may have another configuration; its namesake in our folder comes first.
    Json known = job_of(before, job, config.storage.dir);
    if (known.is_null()) known = job_of(before, job, "");
    const std::string dir = known.is_null() ? config.storage.dir : known.value("dir", "");
    const std::uint64_t newest = newest_of(versions_of(known));
    const Progress progress("waiting for a version of " + job, 0);
    BACKSTAY_ASSIGN(version,
                    agent.await_newer({job, dir, newest, options.level}, options.timeout_s));
  }
  if (options.settings.json)
    print_json(
        {{"job", job}, {"stop", options.stop}, {"version", version ? *version : Json(nullptr)}});
  else if (version)
    fmt::print("{} version {} is {} ({})\n", job, version->value("version", 0ull),
               options.level == Level::local ? "on the disk" : level_name(options.level),
               bytes_text(version->value("bytes", 0ull)));
  else
    fmt::print(
        "asked {} for a checkpoint{}; an unmodified program is saved soon, another one at its "
        "next backstay_due()\n",
        job, options.stop ? " and to stop after it" : "");
  return exit_ok;
}

// Turns the name of a level into its number, from which CLI11 reads an enumeration. CLI11's own
// message about a wrong word would list the numbers, too.
CLI::Validator a_level() {
  const auto transform = [](std::string& text) -> std::string {
    for (const Level level : {Level::local, Level::protected_, Level::durable}) {
      if (text != level_name(level)) continue;
      text = std::to_string(static_cast<int>(level));
      return "";
    }
    return fmt::format("\"{}\" is none of local, protected and durable", text);
  };
  return CLI::Validator(transform, "");
}

}  // namespace

Action declare_checkpoint(CLI::App& app) {
  auto options = std::make_shared<CheckpointOptions>();
  app.add_option("job", options->job, "Name of the job; default: job.name")->type_name("JOB");
  app.add_flag("--stop", options->stop, "The program shall end after this checkpoint");
  auto* wait = app.add_flag("--wait", options->wait, "Return when the version is on the disk");
  app.add_option("--level", options->level,
                 "What --wait waits for: local (on the disk), protected or durable")
      ->type_name("LEVEL")
      ->needs(wait)
      ->transform(a_level())
      ->default_str("local");
  app.add_option("--timeout", options->timeout_s, "Seconds that --wait waits at most")
      ->type_name("SECONDS")
      ->check(some_seconds(false))
      ->capture_default_str();
  add_settings(app, options->settings, false);
  app.footer(
      "Examples:\n"
      "  backstay checkpoint lj --wait       before pulling the plug\n"
      "  backstay checkpoint lj --wait --level durable   before giving the node back\n"
      "  backstay checkpoint lj --stop       save, then end the program\n"
      "Exit codes: 0 ok, 1 the version failed, 3 the agent knows no such job, 5 no agent, 6 "
      "timeout");
  return [options] { return checkpoint(*options); };
}

}  // namespace backstay::bin
