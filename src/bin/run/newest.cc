#include "bin/run/newest.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/print.h"
#include "bin/parts/stored.h"
#include "bin/run/run_summary.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

// Several hosts are asked, as one may be a spare that was taken a moment ago and has an empty disk.
constexpr std::size_t hosts_asked = 3;

void take(Newest& newest, const Newest& other) {
  if (other.version > newest.version) newest = other;
}

Newest newest_in(Config config, const std::string& dir, const std::string& job, const char* place) {
  config.storage.dir = dir;
  auto stored = Stored::open(config);
  if (!stored.ok()) return {};
  const auto version = stored->version(job, 0);
  if (!version.ok()) return {};
  return {version->version, version->record.captured_ns, place};
}

Newest newest_in_memory(const Config& config, const std::string& job) {
  Newest newest;
  for (const Json& version : versions_of(job_in_agent(config, job, config.storage.dir))) {
    if (version.value("level", "") != "captured" || !version.value("error", "").empty()) continue;
    take(newest, {version.value("version", VersionNumber{0}),
                  version.value("captured_ns", std::uint64_t{0}), "in the agent's memory"});
  }
  return newest;
}

// From the answer of `backstay ls JOB --json`.
Newest newest_of(const std::string& listing) {
  Newest newest;
  const Json document = Json::parse(listing, nullptr, false);
  if (!document.is_object()) return newest;
  for (const Json& version : document.value("versions", Json::array()))
    if (version.value("state", "") == "complete")
      take(newest, {version.value("version", VersionNumber{0}),
                    version.value("captured_ns", std::uint64_t{0}), "on the disks of the hosts"});
  return newest;
}

// From a job of an agent's status.
// The age of the refusal was measured before now, so one of this attempt is never older than it.
std::string refusal_of(const Json& job, std::uint64_t began_ns) {
  const double seconds = static_cast<double>(system_clock().monotonic_ns() - began_ns) * 1e-9;
  const Json refused = job.is_object() ? job.value("refused", Json()) : Json();
  if (!refused.is_object() || refused.value("age_s", seconds + 1) > seconds) return "";
  return refused.value("why", "what was saved does not fit");
}

// From the log of a job whose ranks write their versions by themselves.
std::string refusal_in(const std::string& job_folder, std::uint64_t began_ns) {
  const std::uint64_t since = system_clock().monotonic_ns() - began_ns;
  std::string why;
  for (const std::string& line : read_job_log(job_folder)) {
    const Json event = Json::parse(line, nullptr, false);
    if (!event.is_object() || event.value("event", "") != "refused") continue;
    if (event.value("t_ns", std::uint64_t{0}) + since >= system_clock().wall_ns())
      why = event.value("why", "what was saved does not fit");
  }
  return why;
}

}  // namespace

std::string refusal_since(const Config& config, const std::string& job, std::uint64_t began_ns,
                          const RunHosts* hosts) {
  const std::string& dir = config.storage.dir;
  if (!uses_agents(config)) return refusal_in(config.durable.dir + "/" + job, began_ns);
  std::string why = refusal_of(job_in_agent(config, job, dir), began_ns);
  if (!why.empty() || hosts == nullptr) return why;
  for (const std::string& answer : hosts->ask({"status", "--json"}, hosts_asked)) {
    const Json status = Json::parse(answer, nullptr, false);
    if (status.is_object() && why.empty()) why = refusal_of(job_of(status, job, dir), began_ns);
  }
  return why;
}

Newest newest_version(const Config& config, const std::string& job, const RunHosts* hosts) {
  // The agent first: a version leaves its memory for the disk, never the other way.
  Newest newest = newest_in_memory(config, job);
  take(newest, newest_in(config, config.storage.dir, job, "on the disk"));
  if (!config.durable.dir.empty())
    take(newest, newest_in(config, config.durable.dir, job, "in the durable directory"));
  if (hosts == nullptr) return newest;
  for (const std::string& listing :
       hosts->ask({"ls", job, "--json", "--dir", config.storage.dir}, hosts_asked))
    take(newest, newest_of(listing));
  return newest;
}

std::string text_of(const Newest& newest, std::uint64_t lost_ns) {
  if (newest.version == 0) return "from the beginning: no version was saved yet";
  const bool known = newest.captured_ns != 0 && lost_ns > newest.captured_ns;
  const double before_s = known ? static_cast<double>(lost_ns - newest.captured_ns) * 1e-9 : 0;
  return fmt::format(
      "from version {}, captured {} ({})", newest.version,
      known ? duration_text(before_s) + " before the failure" : age_text(newest.captured_ns),
      newest.place);
}

}  // namespace backstay::bin
