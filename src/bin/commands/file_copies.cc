#include "bin/commands/file_copies.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/machine.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/parts/stored.h"
#include "client/files_job.h"
#include "format/names.h"
#include "store/home/copy_giver.h"
#include "store/home/copy_keeper.h"
#include "store/home/home_mark.h"
#include "store/home/lost_files.h"
#include "store/job_lock.h"
#include "store/version_copy.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;
using store::CopyKeeper;
using store::LostFiles;

constexpr double giver_patience_s = 600;  // a keeper may sync a large copy
constexpr double keeper_patience_s = 20;
constexpr double keeper_ends_s = 10;  // its line has ended, and it may still sync a copy
constexpr int round_pause_ms = 250;

Status tell_agent(const Config& config, const std::string& job, VersionNumber version, RunId run) {
  constexpr double patience_s = 5;
  BACKSTAY_ASSIGN(AgentLink link, AgentLink::connect(config, patience_s));
  return link.tell(wire::Copied{job, config.storage.dir, version, run});
}

Json round_json(const CopyKeeper::Round& round) {
  return {{"waiting", round.waiting}, {"copies", round.copies}, {"troubles", round.troubles}};
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Never blocks: `backstay run` may not read these words while it waits for files to come home, and
// copying goes on meanwhile.
void tell_of(const CopyKeeper::Round& round) {
  pollfd words{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&words, 1, 0) == 1) to_stderr(json_line(round_json(round)) + "\n");
}

Result<store::LineMessage> greeting(store::CopyLine& line) {
  BACKSTAY_ASSIGN(store::LineMessage answer, line.ask(store::line_question("greet")));
  BACKSTAY_TRY(store::error_of(answer));
  return answer;
}

// Waits until the other host has a storage folder: it makes one with its first agent. Refuses the
// same folder on both hosts: the lock that is taken here would keep that agent out of it.
Status check_storage(store::CopyLine& line, const std::string& dir) {
  for (;;) {
    BACKSTAY_ASSIGN(const store::LineMessage answer, greeting(line));
    const store::FolderFacts there{.inode = answer.head.value("inode", std::uint64_t{0}),
                                   .born_ns = answer.head.value("born_ns", std::uint64_t{0})};
    const auto here = store::look_at_folder(dir);
    if (there.inode != 0 && here.ok() && store::same_folder(*here, there))
      return Error(Code::invalid, fmt::format("{} is one folder for both: a copy there would not "
                                              "outlive it; set durable.dir, or another storage.dir",
                                              dir));
    if (there.inode != 0) return {};
    tell_of({});
    ::poll(nullptr, 0, round_pause_ms);
  }
}

// Whose job of files is at the other end. Errors: protocol, invalid (it is this host).
Result<std::string> greet_giver(store::CopyLine& line) {
  BACKSTAY_ASSIGN(const store::LineMessage answer, greeting(line));
  if (answer.head.value("protocol", 0U) != store::copy_line_protocol)
    return Error(Code::protocol, "the other host has another release of Backstay");
  if (answer.head.value("host", "") == host_name())
    return Error(Code::invalid, "both ends are on this host");
  return answer.head.value("job", "");
}

// The keeper of a line that has just ended may still hold it.
Result<store::HeldLock> lock_patiently(const std::string& dir, const std::string& job,
                                       double patience_s) {
  const std::uint64_t deadline = deadline_in(patience_s);
  for (;;) {
    auto lock = store::lock_job(dir, job);
    const bool busy = !lock.ok() && lock.error().code() == Code::busy;
    if (!busy || system_clock().monotonic_ns() >= deadline) return lock;
    ::poll(nullptr, 0, round_pause_ms);
  }
}

// Of `JOB=VERSION`, where no name of a job has a `=`.
std::map<std::string, VersionNumber> split(const std::vector<std::string>& of) {
  std::map<std::string, VersionNumber> all;
  for (const std::string& word : of) {
    const auto end = std::min(word.find('='), word.size());
    VersionNumber version = 0;
    if (end < word.size())
      std::from_chars(word.data() + end + 1, word.data() + word.size(), version);
    all[word.substr(0, end)] = version;
  }
  return all;
}

// Nothing is left to bring, and nothing to export.
bool nothing_is_left(tier::Tier& tier, const format::CommitRecord& record) {
  const auto mark = store::read_home_mark(tier, record, 0);
  return mark.ok() && *mark && (*mark)->files.empty();
}

Json lost_file_json(const LostFiles::File& file) {
  return {{"job", file.job}, {"version", file.version}, {"path", file.path}, {"why", file.why}};
}

// Names only the first files that were left, as `backstay run` tells no more.
Json outcome_json(const LostFiles::Outcome& outcome) {
  constexpr std::size_t named_max = 8;
  Json all{{"brought", Json::object()}, {"left", Json::array()}};
  for (const LostFiles::File& file : outcome.brought) {
    Json& count = all["brought"][file.job];
    count = count.is_null() ? 1 : count.get<std::uint64_t>() + 1;
  }
  for (const LostFiles::File& file : outcome.left)
    if (all["left"].size() < named_max) all["left"].push_back(lost_file_json(file));
  all["left_more"] = outcome.left.size() - all["left"].size();
  return all;
}

}  // namespace

Result<int> give_copies(const Config& config, const std::string& job) {
  ::signal(SIGPIPE, SIG_IGN);
  const std::string files_job = client::files_job_name(job);
  BACKSTAY_ASSIGN(Stored stored, Stored::open(config));
  store::CopyGiver giver({.tier = &stored.tier(),
                          .job = files_job,
                          .host = host_name(),
                          .dir = config.storage.dir,
                          .look_at_folder = store::look_at_folder,
                          .copied = [&](VersionNumber version, RunId run) {
                            return tell_agent(config, files_job, version, run);
                          }});
  store::CopyLine line(STDIN_FILENO, STDOUT_FILENO, giver_patience_s);
  BACKSTAY_TRY(line.serve([&](const store::LineMessage& one) { return giver.answer(one); }));
  return exit_ok;
}

Result<int> keep_copies(const Config& config, const std::string& host) {
  ::signal(SIGPIPE, SIG_IGN);
  store::CopyLine line(STDIN_FILENO, STDOUT_FILENO, keeper_patience_s);
  BACKSTAY_ASSIGN(const std::string job, greet_giver(line));
  BACKSTAY_TRY(check_job_name(job));
  BACKSTAY_TRY(check_storage(line, config.storage.dir));
  BACKSTAY_ASSIGN(Stored stored, Stored::open(config));
  BACKSTAY_ASSIGN(const store::HeldLock lock,
                  lock_patiently(config.storage.dir, job, keeper_ends_s));
  CopyKeeper keeper({.tier = &stored.tier(),
                     .job = job,
                     .host = host,
                     .bytes_per_s = config.protect.rate_limit_mib_s << 20,
                     .look_at_folder = store::look_at_folder},
                    [&](const store::LineMessage& question) { return line.ask(question); });
  for (;;) {
    BACKSTAY_TRY(lock->check());
    BACKSTAY_ASSIGN(const CopyKeeper::Round round, keeper.round());
    tell_of(round);
    ::poll(nullptr, 0, round_pause_ms);
  }
}

Result<int> list_copies(const Config& config, const std::string& job) {
  BACKSTAY_ASSIGN(Stored stored, Stored::open(config));
  BACKSTAY_ASSIGN(const auto jobs, stored.jobs());
  Json all = Json::array();
  for (const std::string& name : jobs) {
    if (!name.starts_with(job + ".files.")) continue;
    const auto versions = store::scan(stored.tier(), name);
    if (!versions.ok()) continue;
    Json one;
    for (const store::StoredVersion& version : *versions) {
      const auto note = store::read_note(stored.tier(), name, version.version);
      if (!version.good() || !note.ok() || !*note) continue;
      const auto nothing = store::nothing_waits(stored.tier(), version.record);
      if (nothing.ok() && *nothing) continue;
      one = {{"job", name}, {"host", (*note)->host}, {"newest", version.version}};
    }
    if (!one.is_null()) all.push_back(std::move(one));
  }
  fmt::print("{}\n", json_line(all));
  return exit_ok;
}

Result<int> bring_copies(const Config& config, const std::string& job,
                         const std::vector<std::string>& of) {
  BACKSTAY_ASSIGN(Stored stored, Stored::open(config));
  const auto files_jobs = split(of);
  std::map<std::string, store::FolderFacts> folders;
  LostFiles files({.name = job + ".files of lost hosts",
                   .from = &stored.tier(),
                   .same_folder = [&](const std::string& folder) -> Status {
                     BACKSTAY_ASSIGN(const auto here, store::look_at_folder(folder));
                     const auto there = folders.find(folder);
                     if (there != folders.end() && store::same_folder(here, there->second))
                       return {};
                     return Error(Code::unsupported, folder + " is not the folder that it was");
                   }});
  // The host of the `backstay run` that has laid the keeper's line may be lost too: then the line
  // does not end, and the keeper waits for its next word.
  constexpr double patience_s = keeper_patience_s + keeper_ends_s;
  std::vector<store::HeldLock> locks;
  for (const auto& [name, newer_elsewhere] : files_jobs) {
    BACKSTAY_ASSIGN(auto lock, lock_patiently(config.storage.dir, name, patience_s));
    locks.push_back(std::move(lock));
    // Nothing can be fetched of these, they never were *protected*, and another keeper may have
    // them whole.
    BACKSTAY_TRY(store::remove_unfinished(stored.tier(), name));
    BACKSTAY_ASSIGN(const auto versions, store::scan(stored.tier(), name));
    for (const store::StoredVersion& version : versions) {
      const auto note = store::read_note(stored.tier(), name, version.version);
      if (note.ok() && *note) folders.insert((*note)->folders.begin(), (*note)->folders.end());
    }
    files.add(name, newer_elsewhere);
  }
  const LostFiles::Outcome outcome = files.bring();
  const Json all = outcome_json(outcome);
  for (const auto& [name, newer_elsewhere] : files_jobs) {
    const auto versions = store::scan(stored.tier(), name);
    for (const store::StoredVersion& version :
         versions.ok() ? *versions : std::vector<store::StoredVersion>{})
      if (version.good() && nothing_is_left(stored.tier(), version.record))
        (void)stored.tier().remove(format::version_folder(name, version.version)).ok();
  }
  fmt::print("{}\n", json_line(all));
  return exit_ok;
}

}  // namespace backstay::bin
