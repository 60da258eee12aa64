// `backstay verify`: reads versions and checks every checksum; sets damaged ones aside.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.h"
#include "base/failpoint.h"
#include "bin/commands/check_version.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/settings.h"
#include "format/names.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyOptions {
  Settings settings;
  std::string job;
  VersionNumber version = 0;
  unsigned threads = 0;
  bool no_mark = false;
};

struct Verified {
  store::StoredVersion version;
  CheckResult result;
  double seconds = 0;
  bool marked = false;    // the `damaged` file was written
  bool unmarked = false;  // the file was removed
};

// Retention may have removed the version while it was read, and a newer one may have overwritten
// its file: that is no damage, and a mark would create the folder again.
Status still_there(Stored& stored, const std::string& job, VersionNumber number) {
  BACKSTAY_ASSIGN(const auto now, stored.version(job, number));
  if (now.level != Level::none || !now.damage.empty()) return {};
  return Error(Code::not_found,
               fmt::format("{} version {} was removed while it was read", job, number));
}

// Keeps the `damaged` file in step with the findings: restarts rely on it.
Status mark(Stored& stored, const std::string& job, Verified& one) {
  const std::string name =
      format::version_folder(job, one.version.version) + "/" + std::string(format::damaged_name);
  if (one.result.damages > 0) {
    BACKSTAY_TRY(store::set_aside(stored.tier(), job, one.version.version,
                                  "backstay verify: " + one.result.damaged.front().what));
    one.marked = true;
  } else if (!one.version.damage.empty()) {
    BACKSTAY_TRY(stored.tier().remove(name));
    one.unmarked = true;
  }
  return {};
}

Result<Verified> verify_one(Stored& stored, const std::string& job,
                            const store::StoredVersion& version, const VerifyOptions& options) {
  Verified one{version, {}, 0, false, false};
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const std::uint64_t start = system_clock().monotonic_ns();
  Progress progress(fmt::format("{} version {}", job, version.version),
                    version.record.payload_bytes);
  BACKSTAY_ASSIGN(one.result, check_version(stored, job, version,
                                            options.threads ? options.threads : cores, progress));
  one.seconds = static_cast<double>(system_clock().monotonic_ns() - start) * 1e-9;
  failpoint("verify.read");
  if (one.result.damages > 0) BACKSTAY_TRY(still_there(stored, job, version.version));
  if (!options.no_mark) BACKSTAY_TRY(mark(stored, job, one));
  return one;
}

void print_one(const std::string& job, const Verified& one) {
  const CheckResult& result = one.result;
  const auto number = one.version.version;
  if (result.damages == 0) {
    fmt::print("{} version {}: every byte is right ({} in {}, {}){}\n", job, number,
               bytes_text(result.bytes), count_text(result.chunks, "chunk"),
               rate_text(static_cast<double>(result.bytes) / std::max(one.seconds, 1e-9)),
               one.unmarked ? "; it had been set aside and counts again" : "");
    return;
  }
  fmt::print("{} version {}: DAMAGED in {}{}\n", job, number, count_text(result.damages, "place"),
             !one.marked                     ? ""
             : one.version.record.nodes == 1 ? "; it was set aside, restarts take an older version"
                                             : "; it was set aside here, restarts take what other "
                                               "nodes have of it, or an older version");
  for (const Damage& damage : result.damaged)
    fmt::print("  node {}: {}\n", damage.node, printable(damage.what));
  if (result.damages > result.damaged.size()) fmt::print("  and more\n");
}

Json as_json(const Verified& one) {
  Json damaged = Json::array();
  for (const Damage& damage : one.result.damaged)
    damaged.push_back({{"node", damage.node}, {"what", damage.what}});
  return {{"version", one.version.version}, {"good", one.result.damages == 0},
          {"chunks", one.result.chunks},    {"bytes", one.result.bytes},
          {"regions", one.result.regions},  {"files", one.result.files},
          {"damages", one.result.damages},  {"damaged", damaged},
          {"marked", one.marked},           {"unmarked", one.unmarked},
          {"seconds", one.seconds}};
}

Result<std::vector<store::StoredVersion>> to_verify(Stored& stored, const std::string& job,
                                                    VersionNumber number) {
  BACKSTAY_ASSIGN(auto all, stored.versions(job));
  if (number != 0) {
    BACKSTAY_ASSIGN(const auto one, stored.version(job, number));
    all = {one};
  }
  // Without a commit record it is no version: being written, or left by a crash.
  std::erase_if(all, [](const auto& v) { return v.level == Level::none && v.damage.empty(); });
  if (all.empty()) return Error(Code::none, job + " has no complete version");
  return all;
}

Result<int> verify(const VerifyOptions& options) {
  BACKSTAY_ASSIGN(const Config config, load_for_versions(options.settings));
  BACKSTAY_ASSIGN(const std::string job, job_or_configured(options.job, config));
  BACKSTAY_ASSIGN(Stored stored, Stored::open(config));
  BACKSTAY_ASSIGN(const auto versions, to_verify(stored, job, options.version));
  bool damaged = false, unread = false;
  Json list = Json::array();
  for (const auto& version : versions) {
    const auto one = verify_one(stored, job, version, options);
    if (!one.ok() && one.error().code() == Code::not_found && options.version == 0)
      continue;  // removed meanwhile
    if (!one.ok() && versions.size() == 1) return one.error();
    if (!one.ok()) {  // the others are still checked
      unread = true;
      remark(fmt::format("{} version {} cannot be checked: {}", job, version.version,
                         one.error().message()));
      list.push_back(
          {{"version", version.version}, {"good", false}, {"error", one.error().message()}});
      continue;
    }
    damaged |= one->result.damages > 0;
    if (options.settings.json)
      list.push_back(as_json(*one));
    else
      print_one(job, *one);
  }
  if (options.settings.json) print_json({{"dir", stored.dir()}, {"job", job}, {"versions", list}});
  return damaged ? exit_damaged : unread ? exit_failed : exit_ok;
}

}  // namespace

Action declare_verify(CLI::App& app) {
  auto options = std::make_shared<VerifyOptions>();
  app.add_option("job", options->job, "Name of the job; default: job.name")->type_name("JOB");
  app.add_option("version", options->version, "Number of the version; default: all")
      ->type_name("VERSION")
      ->check(a_version());
  app.add_option("--threads", options->threads, "Threads that read and check; default: one a core")
      ->type_name("N")
      ->check(a_count());
  app.add_flag("--no-mark", options->no_mark, "Do not write or remove the `damaged` file");
  add_settings(app, options->settings, true);
  app.footer(
      "A damaged version is set aside: restarts skip it. One that proves right counts again.\n"
      "Examples:\n"
      "  backstay verify lj\n"
      "  backstay verify lj 12 --json\n"
      "Exit codes: 0 all right, 1 a version cannot be read, 3 no such job or version, 4 damage was "
      "found");
  return [options] { return verify(*options); };
}

}  // namespace backstay::bin
