#include "bin/run/lost_hosts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "bin/parts/print.h"
#include "bin/parts/stored.h"
#include "client/files_job.h"
#include "store/home/lost_files.h"
#include "store/home/shared_folder.h"
#include "store/job_lock.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;
using store::LostFiles;

constexpr std::size_t told_max = 8;  // files of a job that are told by name

// Ok if the folder is on shared storage. A folder of this host alone is not the one that the lost
// host had under this name.
Status same_folder(const std::string& folder, const std::string& durable) {
  struct stat here = {};
  struct stat shared = {};
  if (::stat(folder.c_str(), &here) != 0) return errno_error("look at " + folder, errno);
  if (::stat(durable.c_str(), &shared) == 0 && shared.st_dev == here.st_dev) return {};
  BACKSTAY_ASSIGN(const bool network, store::is_on_network(folder));
  if (network) return {};
  return Error(Code::unsupported,
               fmt::format("{} is on a file system that is not known to be shared", folder));
}

std::vector<FilesOfHost> files_jobs(Stored& durable, const std::string& job,
                                    const RunHosts* hosts) {
  std::vector<FilesOfHost> found;
  const std::string prefix = job + ".files.";
  const auto names = durable.tier().list("");
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>{}) {
    if (!name.starts_with(prefix)) continue;
    const auto versions = store::scan(durable.tier(), name);
    if (!versions.ok() || versions->empty()) continue;  // nothing there, or another user's
    FilesOfHost& one = found.emplace_back(FilesOfHost{name, name.substr(prefix.size())});
    one.here = is_of_host(one, job, host_name());
    if (hosts == nullptr) continue;
    for (const std::string host : hosts->summary().value("hosts", Json::array()))
      if (is_of_host(one, job, host)) one.in_use = host;
  }
  return found;
}

void tell(const FilesOfHost& one, const LostFiles::Outcome& outcome, const std::string& durable,
          const Say& say) {
  const auto brought = static_cast<std::uint64_t>(
      std::ranges::count(outcome.brought, one.job, &LostFiles::File::job));
  if (brought > 0)
    say("lost_host_files",
        fmt::format("brought {} of {} home out of {}", count_text(brought, "captured file"),
                    one.host, durable),
        {{"host", one.host}, {"files", brought}});
  std::size_t left = 0;
  for (const LostFiles::File& file : outcome.left) {
    if (file.job != one.job || ++left > told_max) continue;
    if (file.version == 0) {
      say("lost_host_file_left",
          fmt::format(
              "the files of {} did not come home: {}; `backstay ls {} --dir {}` tries again",
              one.job, file.why, one.job, durable),
          {{"host", one.host}, {"why", file.why}});
      continue;
    }
    const std::string what = file.path.empty() ? "the files" : file.path;
    say("lost_host_file_left",
        fmt::format("{} of {} version {} did not come home: {}; `backstay export {} {} --dir {} "
                    "-o DIR` fetches what is good of it",
                    what, one.job, file.version, file.why, one.job, file.version, durable),
        {{"host", one.host}, {"version", file.version}, {"file", file.path}, {"why", file.why}});
  }
  if (left > told_max)
    say("lost_host_files_left",
        fmt::format("and {} more of {}: `backstay ls --files {} --dir {}`", left - told_max,
                    one.job, one.job, durable),
        {{"host", one.host}, {"files", left - told_max}});
}

}  // namespace

bool is_of_host(const FilesOfHost& one, const std::string& job, const std::string& host) {
  return one.job == client::files_job_name(job, host) || short_name(one.host) == short_name(host);
}

bool has_lost_its_disk(const Config& config, const FilesOfHost& one, const RunHosts* hosts) {
  if (one.here) {
    auto stored = Stored::open(config);
    if (!stored.ok()) return false;
    const auto versions = store::scan(stored->tier(), one.job);
    return versions.ok() && versions->empty();
  }
  constexpr double work_s = 10;
  const auto answers =
      hosts->ask_each({{*one.in_use, {"ls", one.job, "--json", "--dir", config.storage.dir}},
                       {*one.in_use, {"version"}}},
                      work_s);
  return !answers.front().ok() && answers.back().ok();
}

void bring_files_of_lost_hosts(const Config& config, const std::string& job, const RunHosts* hosts,
                               const Say& say) {
  const std::string& dir = config.durable.dir;
  if (dir.empty()) return;
  Config shared = config;
  shared.storage.dir = dir;
  auto durable = Stored::open(shared);
  if (!durable.ok()) return;  // the agents say so
  const std::vector<FilesOfHost> all = files_jobs(*durable, job, hosts);
  if (all.empty()) return;
  LostFiles files(
      {.name = job + ".files of lost hosts",
       .from = &durable->tier(),
       .same_folder = [&](const std::string& folder) { return same_folder(folder, dir); }});
  std::vector<store::HeldLock> locks;
  for (const FilesOfHost& one : all) {
    const bool of_this_run = one.here || one.in_use;
    auto live = store::lock_live(dir, one.job);
    auto lock = live.ok() ? store::lock_job(dir, one.job) : live;
    if (!lock.ok()) {
      if (!of_this_run)
        say("lost_host_busy",
            fmt::format(
                "captured files of {} are not brought home{}", one.host,
                lock.error().code() == Code::busy
                    ? fmt::format(", as it may still do so itself: {}/{} is locked", dir, one.job)
                    : ": " + lock.error().message()),
            {{"host", one.host}});
      continue;
    }
    if (of_this_run && !has_lost_its_disk(config, one, hosts)) continue;
    files.add(one.job);
    locks.push_back(std::move(*live));
    locks.push_back(std::move(*lock));
  }
  const LostFiles::Outcome outcome = files.bring();
  for (const FilesOfHost& one : all) tell(one, outcome, dir, say);
}

}  // namespace backstay::bin
