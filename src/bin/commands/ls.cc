// `backstay ls`: jobs, the versions of one, or its captured files, read from the storage folder.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "bin/commands/ls_files.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/settings.h"
#include "bin/parts/stored.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

struct LsOptions {
  Settings settings;
  std::string job;
  bool names = false;
  bool files = false;
};

Json as_json(const store::StoredVersion& version) {
  return {{"version", version.version},
          {"state", state_text(version)},
          {"level", level_name(version.level)},
          {"damage", version.damage},
          {"ranks", version.record.ranks},
          {"nodes", version.record.nodes},
          {"payload_bytes", version.record.payload_bytes},
          {"captured_ns", version.record.captured_ns},
          {"committed_ns", version.record.committed_ns}};
}

Result<int> list_versions(Stored& stored, const std::string& job, bool json) {
  std::vector<std::string> ignored;
  BACKSTAY_ASSIGN(const auto versions, stored.versions(job, &ignored));
  if (json) {
    Json list = Json::array();
    for (const auto& version : versions) list.push_back(as_json(version));
    print_json({{"dir", stored.dir()}, {"job", job}, {"versions", list}, {"ignored", ignored}});
    return exit_ok;
  }
  Table table({">VERSION", "STATE", "LEVEL", ">RANKS", ">BYTES", "CAPTURED", "AGE"});
  for (const auto& version : versions) {
    const bool known = version.level != Level::none;
    table.add({std::to_string(version.version), state_text(version),
               known ? std::string(level_name(version.level)) : "-",
               known ? std::to_string(version.record.ranks) : "-",
               known ? bytes_text(version.record.payload_bytes) : "-",
               time_text(version.record.captured_ns), age_text(version.record.captured_ns)});
  }
  fmt::print("{}", table.text());
  if (std::ranges::any_of(versions, counts_one_node)) {
    fmt::print("BYTES: of this node\n");
  }
  for (const auto& version : versions)
    if (!version.damage.empty())
      fmt::print("version {} is damaged: {}\n", version.version, printable(version.damage));
  for (const std::string& name : ignored) {
    fmt::print("{}/{}/{} is not a version of this job, and ignored: remove the folder\n",
               stored.dir(), job, name);
  }
  return exit_ok;
}

struct JobSummary {
  std::string name;
  std::size_t versions = 0, complete = 0, damaged = 0;
  std::uint64_t payload_bytes = 0;
  store::StoredVersion newest;  // version 0: none is good
};

Result<JobSummary> summary_of(Stored& stored, const std::string& job) {
  BACKSTAY_ASSIGN(const auto versions, stored.versions(job));
  JobSummary summary{job, versions.size(), 0, 0, 0, {}};
  for (const auto& version : versions) {
    summary.complete += version.good();
    summary.damaged += !version.damage.empty();
    summary.payload_bytes += version.record.payload_bytes;
  }
  if (const auto* newest = newest_good(versions)) summary.newest = *newest;
  return summary;
}

void print_jobs(const std::string& dir, const std::vector<JobSummary>& jobs) {
  Table table({"JOB", ">COMPLETE", ">DAMAGED", ">BYTES", ">NEWEST", ">RANKS", "AGE"});
  for (const JobSummary& job : jobs) {
    const bool any = job.newest.version != 0;
    table.add({job.name, std::to_string(job.complete), std::to_string(job.damaged),
               bytes_text(job.payload_bytes), any ? std::to_string(job.newest.version) : "-",
               any ? std::to_string(job.newest.record.ranks) : "-",
               age_text(job.newest.record.captured_ns)});
  }
  fmt::print("{} in {}\n{}", count_text(jobs.size(), "job"), dir, table.text());
}

Json as_json(const JobSummary& job) {
  return {{"job", job.name},
          {"versions", job.versions},
          {"complete", job.complete},
          {"damaged", job.damaged},
          {"payload_bytes", job.payload_bytes},
          {"newest", job.newest.version ? as_json(job.newest) : Json(nullptr)}};
}

Result<int> list_jobs(Stored& stored, const LsOptions& options) {
  BACKSTAY_ASSIGN(const auto names, stored.jobs());
  if (options.names) {
    for (const std::string& name : names) fmt::print("{}\n", name);
    return names.empty() ? exit_nothing : exit_ok;
  }
  std::vector<JobSummary> jobs;
  for (const std::string& name : names) {
    auto summary = summary_of(stored, name);
    if (!summary.ok() && summary.error().code() == Code::not_found) continue;  // removed meanwhile
    if (!summary.ok()) return summary.error();
    jobs.push_back(std::move(summary).value());
  }
  if (options.settings.json) {
    Json list = Json::array();
    for (const JobSummary& job : jobs) list.push_back(as_json(job));
    print_json({{"dir", stored.dir()}, {"jobs", list}});
  } else if (!jobs.empty()) {
    print_jobs(stored.dir(), jobs);
  } else {
    remark("no versions in " + stored.dir() + " (another folder: --dir, or storage.dir)");
    const std::vector<std::string> others = stored.unreadable();
    if (!others.empty()) remark(fmt::format("this user may not read: {}", fmt::join(others, ", ")));
  }
  return jobs.empty() ? exit_nothing : exit_ok;
}

Result<int> list(const LsOptions& options) {
  BACKSTAY_ASSIGN(const Config config, load_for_versions(options.settings));
  BACKSTAY_ASSIGN(Stored stored, Stored::open(config));
  if (options.job.empty()) {
    if (options.files) return Error(Code::invalid, "--files needs the name of a job");
    return list_jobs(stored, options);
  }
  BACKSTAY_TRY(check_job_name(options.job));
  if (options.files) return list_files(stored, options.job, options.settings.json);
  return list_versions(stored, options.job, options.settings.json);
}

}  // namespace

Action declare_ls(CLI::App& app) {
  auto options = std::make_shared<LsOptions>();
  app.add_option("job", options->job, "List the versions of this job")->type_name("JOB");
  app.add_flag("--names", options->names, "Print only the names of the jobs");
  app.add_flag("--files", options->files,
               "List the captured files of the job, and which are not at their own paths yet");
  add_settings(app, options->settings, true);
  app.footer(
      "Examples:\n"
      "  backstay ls                 all jobs of this machine's folder\n"
      "  backstay ls lj              the versions of one\n"
      "  backstay ls lj --files      its captured files\n"
      "  backstay ls lj --json | jq '.versions[-1].version'\n"
      "Exit codes: 0 ok, 3 nothing there");
  return [options] { return list(*options); };
}

}  // namespace backstay::bin
