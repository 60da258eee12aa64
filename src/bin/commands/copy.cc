// `backstay copy`: one version from the storage folder to another, or back, after those that it
// needs; every chunk is checked.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/progress.h"
#include "bin/parts/settings.h"
#include "bin/parts/stored.h"
#include "store/job_lock.h"
#include "store/version_copy.h"

namespace backstay::bin {
namespace {

namespace fs = std::filesystem;

struct CopyOptions {
  Settings settings;
  std::string job;
  VersionNumber version = 0;
  std::string to;
  std::string from;
};

// Source, target, and the level of the version there.
struct Way {
  Stored from;
  Stored to;
  Level level = Level::durable;
};

Result<Way> way(const CopyOptions& options, const Config& config) {
  if (options.to.empty() == options.from.empty()) {
    return Error(Code::invalid, "where to, or where from? Give one of --to DIR and --from DIR");
  }
  Config other = config;
  std::error_code failure;
  const std::string& named = options.to.empty() ? options.from : options.to;
  other.storage.dir = fs::absolute(named, failure).lexically_normal().string();
  // The folder is not made here: a shared directory that is missing may just not be mounted.
  if (!fs::is_directory(other.storage.dir, failure)) {
    return Error(Code::invalid, other.storage.dir + " is no folder; make it, or mount it");
  }
  const fs::path ours = fs::weakly_canonical(config.storage.dir, failure);
  const fs::path theirs = fs::canonical(other.storage.dir, failure);
  if (theirs == ours) return Error(Code::invalid, named + " is the storage folder itself");
  if (std::mismatch(ours.begin(), ours.end(), theirs.begin(), theirs.end()).first == ours.end()) {
    return Error(Code::invalid, fmt::format("{} lies in the storage folder {}, where each folder "
                                            "is a job; name one outside of it",
                                            named, ours.string()));
  }
  BACKSTAY_ASSIGN(Stored here, Stored::open(config));
  BACKSTAY_ASSIGN(Stored there, Stored::open(other));
  if (options.from.empty()) return Way{std::move(here), std::move(there), Level::durable};
  return Way{std::move(there), std::move(here), Level::local};
}

Status check_source(Stored& from, const std::string& job, const store::StoredVersion& version) {
  if (!version.damage.empty()) {
    return Error(Code::corrupt,
                 fmt::format("{} version {} is damaged: {}", job, version.version, version.damage));
  }
  if (version.level == Level::none) {
    return Error(Code::none,
                 fmt::format("{} version {} is incomplete: being written, or left by a crash", job,
                             version.version));
  }
  BACKSTAY_ASSIGN(const auto nodes, from.nodes(job, version.version));
  if (!nodes.empty() && nodes.size() < version.record.nodes) {
    return Error(Code::not_found,
                 fmt::format("{} version {} is of {} nodes and {} holds the parts of {}", job,
                             version.version, version.record.nodes, from.dir(), nodes.size()));
  }
  return {};
}

// The version and all that it needs, with what those need, oldest first. Errors: not_found, corrupt
// (one of them cannot be copied; says which needs it).
Result<std::vector<store::StoredVersion>> with_needs(Stored& from, const std::string& job,
                                                     const store::StoredVersion& version) {
  std::map<VersionNumber, store::StoredVersion> all = {{version.version, version}};
  for (auto at = all.rbegin(); at != all.rend(); ++at) {  // needs are older: they come behind it
    for (const format::Need& need : at->second.record.needs) {
      if (all.contains(need.version)) continue;
      const std::string why = fmt::format("version {} needs version {}", at->first, need.version);
      auto needed = from.version(job, need.version);
      if (!needed.ok()) return needed.error().context(why);
      if (const Status good = check_source(from, job, *needed); !good.ok()) {
        return good.error().context(why);
      }
      if (needed->record.run != need.run) {
        return Error(Code::not_found, why + " of another run, which is not there any more");
      }
      all.emplace(need.version, std::move(*needed));
    }
  }
  std::vector<store::StoredVersion> sorted;
  for (auto& [number, one] : all) sorted.push_back(std::move(one));
  return sorted;
}

// The error in words that fit a request for a copy.
Error explained(Way& way, const format::CommitRecord& record, const store::VersionCopy& copy,
                const Error& why) {
  if (!copy.source_is_damaged()) return why;
  if (store::look_at(way.from.tier(), record.job, record.version).level == Level::none) {
    return Error(Code::not_found, fmt::format("{} version {} was removed while it was copied",
                                              record.job, record.version));
  }
  return why.context(fmt::format(
      "{} version {} in {} is damaged and was not copied (`backstay verify` sets it aside)",
      record.job, record.version, way.from.dir()));
}

Status run_copy(Way& way, const format::CommitRecord& record) {
  store::VersionCopy copy(way.from.tier(), way.to.tier(), system_clock(), {record, way.level, 0});
  Progress progress(fmt::format("copying {} version {}", record.job, record.version),
                    record.payload_bytes);
  std::uint64_t shown = 0;
  while (!copy.done()) {
    if (const Status status = copy.step(); !status.ok()) {
      const Error why = explained(way, record, copy, status.error());
      (void)copy.remove_rest().ok();  // the first error is reported
      return why;
    }
    progress.add(copy.bytes() - std::exchange(shown, copy.bytes()));
  }
  return {};
}

// True: it was there already.
Result<bool> copy_one(Way& way, const store::StoredVersion& version) {
  BACKSTAY_ASSIGN(const bool there, store::make_way(way.to.tier(), version.record));
  if (!there) BACKSTAY_TRY(run_copy(way, version.record));
  return there;
}

void print_result(const CopyOptions& options, Way& way, const format::CommitRecord& record,
                  const std::vector<VersionNumber>& needed, bool there, double seconds) {
  if (options.settings.json) {
    return print_json({{"job", record.job},
                       {"version", record.version},
                       {"from", way.from.dir()},
                       {"to", way.to.dir()},
                       {"copied", !there},
                       {"needed", needed},
                       {"payload_bytes", record.payload_bytes},
                       {"seconds", seconds}});
  }
  if (!needed.empty()) {
    fmt::print("copied {} version{} {} first, which it needs\n", record.job,
               needed.size() > 1 ? "s" : "", fmt::join(needed, ", "));
  }
  if (there) {
    return fmt::print("{} version {} is in {} already (`backstay verify --dir` checks it)\n",
                      record.job, record.version, way.to.dir());
  }
  fmt::print("copied {} version {} to {} ({}, {}); every chunk was right\n", record.job,
             record.version, way.to.dir(), bytes_text(record.payload_bytes),
             rate_text(static_cast<double>(record.payload_bytes) / std::max(seconds, 1e-9)));
}

Result<int> copy(const CopyOptions& options) {
  BACKSTAY_ASSIGN(const Config config, load(options.settings));
  BACKSTAY_ASSIGN(const std::string job, job_or_configured(options.job, config));
  BACKSTAY_ASSIGN(Way on, way(options, config));
  BACKSTAY_ASSIGN(const store::StoredVersion version, on.from.version(job, options.version));
  BACKSTAY_TRY(check_source(on.from, job, version));
  BACKSTAY_ASSIGN(const auto all, with_needs(on.from, job, version));
  // An agent that serves the job in the destination knows its versions; no other version may appear
  // there.
  BACKSTAY_ASSIGN(const store::HeldLock lock, store::lock_job(on.to.dir(), job));
  const std::uint64_t start = system_clock().monotonic_ns();
  std::vector<VersionNumber> needed;
  bool there = false;
  for (const store::StoredVersion& one : all) {
    BACKSTAY_ASSIGN(there, copy_one(on, one));
    if (!there && one.version != version.version) needed.push_back(one.version);
  }
  const double seconds = static_cast<double>(system_clock().monotonic_ns() - start) * 1e-9;
  print_result(options, on, version.record, needed, there, seconds);
  return exit_ok;
}

}  // namespace

Action declare_copy(CLI::App& app) {
  auto options = std::make_shared<CopyOptions>();
  app.add_option("job", options->job, "Name of the job; default: job.name")->type_name("JOB");
  app.add_option("version", options->version,
                 "Number of the version; default: the newest complete one there")
      ->type_name("VERSION")
      ->check(a_version());
  auto* to = app.add_option("--to", options->to, "Copy from the storage folder to this folder")
                 ->type_name("DIR");
  app.add_option("--from", options->from, "Copy from this folder to the storage folder")
      ->type_name("DIR")
      ->excludes(to);
  add_settings(app, options->settings, true);
  app.footer(
      "Every chunk is held against its checksum on the way. Versions that it needs are copied "
      "first.\n"
      "The copy exists once it is whole; after an interruption run the same command again.\n"
      "Examples:\n"
      "  backstay copy lj --to /shared/backups       the newest complete version\n"
      "  backstay copy lj 12 --from /shared/backups  one version back, before a restart\n"
      "Exit codes: 0 copied or there already, 1 failed, 3 no such job or version, 4 the version is "
      "damaged, 7 an\n"
      "agent serves the job there, or a version of that number of another run is there");
  return [options] { return copy(*options); };
}

}  // namespace backstay::bin
