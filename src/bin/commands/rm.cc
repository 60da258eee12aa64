// `backstay rm`: removes versions, commit record first. A restart needs the newest complete version
// of a job: it is removed only with --all or --force. What another version needs stays with that.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/clock.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/command.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/settings.h"
#include "bin/parts/stored.h"
#include "format/names.h"
#include "store/job_lock.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

struct RmOptions {
  Settings settings;
  std::string job;
  std::vector<VersionNumber> versions;
  bool all = false;
  bool damaged = false;
  std::optional<double> older_than_s;
  bool with_needing = false;
  bool force = false;
  bool dry_run = false;
};

bool selected(const store::StoredVersion& version, const RmOptions& options) {
  if (options.all) return true;
  if (std::find(options.versions.begin(), options.versions.end(), version.version) !=
      options.versions.end())
    return true;
  if (options.damaged && !version.damage.empty()) return true;
  return options.older_than_s && version.good() &&
         seconds_since(version.record.captured_ns) > *options.older_than_s;
}

// State of the job that a living agent has beyond the disk.
struct InAgent {
  std::vector<VersionNumber> versions;
  std::vector<VersionNumber> being_written;
  std::vector<VersionNumber> unwritable;  // only in the pool, and cannot leave it
  std::uint64_t ranks = 0;                // of a running program
};

InAgent held_by_agent(const Config& config, const std::string& job) {
  InAgent held;
  const Json found = job_in_agent(config, job, config.storage.dir);
  if (found.is_object()) held.ranks = found.value("connected", std::uint64_t{0});
  for (const Json& version : versions_of(found)) {
    const std::string level = version.value("level", "");
    const auto number = version.value("version", VersionNumber{0});
    held.versions.push_back(number);
    if (level != "none" && level != "captured") continue;
    const bool failed = !version.value("error", "").empty();
    (failed ? held.unwritable : held.being_written).push_back(number);
  }
  return held;
}

// A version is complete on the disk a moment before its agent knows that it is: a tool that comes
// in that moment waits for it.
InAgent settled_in_agent(const Config& config, const RmOptions& options, const std::string& job) {
  constexpr double patience_s = 5;
  constexpr int pause_ms = 20;
  const auto wanted = [&](VersionNumber number) {
    return options.all || std::ranges::find(options.versions, number) != options.versions.end();
  };
  InAgent held = held_by_agent(config, job);
  const std::uint64_t begun = system_clock().monotonic_ns();
  while (std::ranges::any_of(held.being_written, wanted) &&
         1e-9 * static_cast<double>(system_clock().monotonic_ns() - begun) < patience_s) {
    ::poll(nullptr, 0, pause_ms);
    held = held_by_agent(config, job);
  }
  return held;
}

// The versions on the disk and those that the agent has besides, oldest first. Errors: not_found
// (neither).
Result<std::vector<store::StoredVersion>> versions_to_remove(
    Stored& stored, const std::string& job, const std::vector<VersionNumber>& in_agent) {
  auto versions = stored.versions(job);
  if (!versions.ok()) {
    if (versions.error().code() != Code::not_found || in_agent.empty()) return versions;
    versions = std::vector<store::StoredVersion>();
  }
  const auto same = [](VersionNumber number) {
    return [number](const auto& version) { return version.version == number; };
  };
  for (const VersionNumber number : in_agent) {
    if (std::any_of(versions->begin(), versions->end(), same(number))) continue;
    versions->emplace_back().version = number;
  }
  std::sort(versions->begin(), versions->end(),
            [](const auto& a, const auto& b) { return a.version < b.version; });
  return versions;
}

// Keeps agents from restarting a program from a version that is removed: the agent that serves the
// job releases it; if none does, the job's lock keeps agents away meanwhile.
class Release {
 public:
  explicit Release(const Config& config, std::string job)
      : agent_(AgentLink::connect(config)), dir_(config.storage.dir), job_(std::move(job)) {}

  // Errors: busy (the version is still needed), agent_lost (the agent does not answer).
  Status let_go(VersionNumber version) {
    if (agent_.ok()) {
      Status status = agent_->tell(wire::Forget{job_, dir_, version});
      if (status.ok() || status.error().code() != Code::not_found) return status;
    }
    if (lock_) return {};
    BACKSTAY_ASSIGN(lock_, store::lock_job(dir_, job_));
    return {};
  }

 private:
  Result<AgentLink> agent_;
  std::string dir_;
  std::string job_;
  store::HeldLock lock_;
};

Status check_named(const std::vector<store::StoredVersion>& versions, const RmOptions& options,
                   const std::string& job) {
  for (const VersionNumber number : options.versions) {
    const bool there = std::any_of(versions.begin(), versions.end(),
                                   [&](const auto& v) { return v.version == number; });
    if (!there)
      return Error(Code::not_found,
                   fmt::format("{} has no version {}; nothing was removed", job, number));
  }
  return {};
}

// What each version on the disk needs (docs/format/manifest.md).
using Needs = std::map<VersionNumber, std::vector<format::Need>>;

Needs needs_of_all(Stored& stored, const std::string& job,
                   const std::vector<store::StoredVersion>& versions) {
  Needs needs;
  for (const auto& version : versions) {
    needs[version.version] = store::needs_there(stored.tier(), job, version);
  }
  return needs;
}

bool names(const std::vector<format::Need>& needs, const store::StoredVersion& version) {
  return std::ranges::any_of(needs, [&](const format::Need& need) {
    const bool known = version.record.run != 0;  // else its record cannot be read
    return need.version == version.version && (!known || need.run == version.record.run);
  });
}

// The newest of `left` that needs it; 0: none does.
VersionNumber needed_by(const store::StoredVersion& version, const Needs& left) {
  const auto needing = std::find_if(
      left.rbegin(), left.rend(), [&](const auto& entry) { return names(entry.second, version); });
  return needing == left.rend() ? 0 : needing->first;
}

// Those that may go, the newest first: what a version needs is asked about after it.
std::vector<store::StoredVersion> chosen(const std::vector<store::StoredVersion>& versions,
                                         const Needs& needs, const RmOptions& options) {
  std::vector<store::StoredVersion> all;
  for (const auto& version : versions) {  // the oldest first: what needs one comes after it
    const bool needs_chosen =
        options.with_needing && std::ranges::any_of(all, [&](const auto& older) {
          return names(needs.at(version.version), older);
        });
    if (selected(version, options) || needs_chosen) all.push_back(version);
  }
  std::ranges::reverse(all);
  return all;
}

// Each node of a job on several nodes keeps its own part and copies of others.
bool is_on_other_nodes(const store::StoredVersion& version) {
  return version.record.nodes > 1 && version.record.level != Level::durable;
}

struct Outcome {
  std::vector<VersionNumber> removed;
  std::map<VersionNumber, std::string> kept;
  std::vector<VersionNumber> elsewhere;  // removed, and other nodes have their parts still
};

void print_result(const std::string& job, const Outcome& outcome, const RmOptions& options) {
  const auto& [removed, kept, elsewhere] = outcome;
  if (options.settings.json) {
    Json list = Json::array();
    for (const auto& [number, why] : kept) list.push_back({{"version", number}, {"why", why}});
    print_json({{"job", job},
                {"removed", removed},
                {"kept", list},
                {"elsewhere", elsewhere},
                {"dry_run", options.dry_run}});
    return;
  }
  for (const VersionNumber number : removed)
    fmt::print("{} {} version {}\n", options.dry_run ? "would remove" : "removed", job, number);
  for (const auto& [number, why] : kept) fmt::print("kept {} version {}: {}\n", job, number, why);
  if (removed.empty() && kept.empty()) fmt::print("nothing to remove\n");
  if (!elsewhere.empty())
    fmt::print(
        "{} from this node only; other nodes have parts and copies of it, and a restart may still "
        "take it: run this on each node of the job\n",
        elsewhere.size() == 1 ? fmt::format("version {} goes", elsewhere.front())
                              : fmt::format("versions {} go", fmt::join(elsewhere, ", ")));
}

Status remove_from_disk(Stored& stored, const std::string& job, VersionNumber version) {
  const Status removed = stored.tier().remove(format::version_folder(job, version));
  if (removed.ok() || removed.error().code() == Code::not_found) return {};
  return removed.error().context(
      fmt::format("version {} is not restarted from any more while this agent runs, but it is "
                  "still on the disk: "
                  "mend the cause and run rm again",
                  version));
}

Result<Outcome> remove_chosen(const RmOptions& options, const Config& config,
                              const std::string& job, Stored& stored,
                              const std::vector<store::StoredVersion>& versions,
                              const std::vector<VersionNumber>& busy) {
  const auto* newest = newest_good(versions);
  Needs left = needs_of_all(stored, job, versions);
  Release release(config, job);
  Outcome outcome;
  auto& kept = outcome.kept;
  for (const auto& version : chosen(versions, left, options)) {
    if (std::find(busy.begin(), busy.end(), version.version) != busy.end()) {
      kept[version.version] = "the agent is writing it";
    } else if (newest && version.version == newest->version && !options.force && !options.all) {
      kept[version.version] = "it is the newest complete version; --force removes it too";
    } else if (const VersionNumber needing = needed_by(version, left)) {
      kept[version.version] =
          fmt::format("version {} needs it; --with-needing removes both", needing);
    } else if (const Status free = options.dry_run ? Status() : release.let_go(version.version);
               !free.ok() && free.error().code() == Code::busy) {
      kept[version.version] = free.error().message();
    } else if (!free.ok()) {
      return free.error();
    } else {
      // The tier removes the commit record first, and makes that safe before it removes the rest.
      if (!options.dry_run) BACKSTAY_TRY(remove_from_disk(stored, job, version.version));
      left.erase(version.version);
      outcome.removed.push_back(version.version);
      if (is_on_other_nodes(version)) outcome.elsewhere.push_back(version.version);
    }
  }
  std::ranges::reverse(outcome.removed);
  std::ranges::reverse(outcome.elsewhere);
  return outcome;
}

Result<int> remove(const RmOptions& options) {
  if (!options.all && !options.damaged && options.versions.empty() && !options.older_than_s)
    return Error(Code::invalid,
                 "say which versions: numbers, --damaged, --older-than AGE or --all");
  if (options.all && !options.versions.empty())
    return Error(Code::invalid,
                 fmt::format("--all and a version ({}) contradict each other: say one of them",
                             fmt::join(options.versions, ", ")));
  if (options.older_than_s && !(*options.older_than_s >= 0))
    return Error(Code::invalid, "--older-than: an age is 0 or more (30m, 12h, 7d, 2w)");
  BACKSTAY_ASSIGN(const Config config, load_for_versions(options.settings));
  BACKSTAY_ASSIGN(const std::string job, job_or_configured(options.job, config));
  BACKSTAY_ASSIGN(Stored stored, Stored::open(config));
  const InAgent in_agent = settled_in_agent(config, options, job);
  if (options.all && in_agent.ranks > 0)
    return Error(Code::busy,
                 fmt::format("a program of job {} is running here ({}); nothing was removed: wait "
                             "for its end, or name the versions that may go",
                             job, count_text(in_agent.ranks, "rank")));
  // --all makes the agent forget the job too, even if its files were removed by hand.
  const auto& besides = options.all ? in_agent.versions : in_agent.unwritable;
  BACKSTAY_ASSIGN(const auto versions, versions_to_remove(stored, job, besides));
  BACKSTAY_TRY(check_named(versions, options, job));
  BACKSTAY_ASSIGN(const Outcome outcome,
                  remove_chosen(options, config, job, stored, versions, in_agent.being_written));
  print_result(job, outcome, options);
  const auto& kept = outcome.kept;
  const bool named_was_kept =
      std::any_of(options.versions.begin(), options.versions.end(),
                  [&](VersionNumber number) { return kept.contains(number); });
  if (named_was_kept || (options.all && !kept.empty())) return exit_refused;
  return exit_ok;
}

}  // namespace

Action declare_rm(CLI::App& app) {
  auto options = std::make_shared<RmOptions>();
  app.add_option("job", options->job, "Name of the job")->type_name("JOB")->required();
  app.add_option("version", options->versions, "Numbers of versions")
      ->type_name("VERSION")
      ->check(a_version());
  app.add_flag(
      "--all", options->all,
      "All versions, the newest too: the job then starts afresh. Not while its program runs");
  app.add_flag("--damaged", options->damaged, "Versions that were found damaged");
  const std::map<std::string, double> units{
      {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 604800}};
  app.add_option("--older-than", options->older_than_s,
                 "Complete versions older than this: 30m, 12h, 7d, 2w")
      ->type_name("AGE")
      ->transform(
          CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::UNIT_REQUIRED).description(""));
  app.add_flag(
      "--force", options->force,
      "With numbers, --older-than: also the newest complete version, which a restart needs");
  app.add_flag("--with-needing", options->with_needing,
               "Also the versions that need one that is removed");
  app.add_flag("--dry-run", options->dry_run, "Say what would be removed");
  add_settings(app, options->settings, true);
  app.footer(
      "Examples:\n"
      "  backstay rm lj 3 4                 two versions\n"
      "  backstay rm lj --older-than 7d     all but the newest that are older than a week\n"
      "  backstay rm lj --all               everything of this job, which then starts afresh\n"
      "Exit codes: 0 ok, 3 no such job or version, 7 a version that was named is needed and was "
      "kept, or the job runs");
  return [options] { return remove(*options); };
}

}  // namespace backstay::bin
