#include "bin/run/kept_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/machine.h"
#include "bin/parts/print.h"
#include "bin/run/lost_hosts.h"
#include "bin/run/this_host.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

// Copies of one host's files, wherever they are.
struct Kept {
  std::string host;  // that has written them, as a `backstay run` has reached it
  std::vector<std::pair<VersionNumber, std::string>> keepers = {};  // newest version there, host
};
using KeptOf = std::map<std::string, Kept>;  // by the job of files

// The host in the name of its job of files.
std::string host_of(const std::string& files_job, const std::string& job) {
  const std::string front = job + ".files.";
  return files_job.starts_with(front) ? files_job.substr(front.size()) : files_job;
}

// What a host of another release says may have fields of other types.
template <typename Read>
bool can_read(const Read& read) {
  try {
    read();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

KeptOf find_copies(const std::string& job, const RunHosts& hosts, const Say& say) {
  constexpr double work_s = 10;
  std::vector<std::string> asked = hosts.reach().all;
  if (std::ranges::none_of(asked, [](const std::string& host) { return is_this_host(host); }))
    asked.push_back(host_name());
  std::vector<RunHosts::Question> questions;
  for (const std::string& host : asked)
    questions.push_back({host, {"agent", "copies", "--job", job}});
  const auto answers = hosts.ask_each(questions, work_s);
  KeptOf all;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Json list = answers[i].ok() ? Json::parse(*answers[i], nullptr, false) : Json();
    if (!list.is_array()) {
      say("copies_unknown",
          fmt::format("{} does not tell whether it has copies of captured files; those that it may "
                      "have are not brought home before the next start",
                      asked[i]),
          {{"keeper", asked[i]}});
      continue;
    }
    for (const Json& one : list) {
      (void)can_read([&] {
        const std::string host = one.value("host", "");
        const auto newest = one.value("newest", VersionNumber{0});
        Kept& kept = all[one.value("job", "")];
        kept.host = host;
        kept.keepers.emplace_back(newest, asked[i]);
      });
    }
  }
  for (auto& [name, kept] : all) std::ranges::sort(kept.keepers, std::greater<>());
  return all;
}

// Its agent does not bring its files home any more. Says so where it may.
bool is_lost(const Config& config, const std::string& job, const std::string& files_job,
             const Kept& kept, const RunHosts& hosts, const Say& say) {
  constexpr double work_s = 10;
  FilesOfHost one{files_job, host_of(files_job, job)};
  one.here = is_of_host(one, job, host_name());
  for (const std::string& host : hosts.reach().all)
    if (host == kept.host || is_of_host(one, job, host)) one.in_use = host;
  if (one.here || one.in_use) return has_lost_its_disk(config, one, &hosts);
  if (!hosts.ask_each({{kept.host, {"version"}}}, work_s).front().ok()) return true;
  say("lost_host_busy",
      fmt::format("captured files of {} are not brought home, as {} lives and may do so itself: "
                  "`backstay exec --job {} -- true` there, or the host in the list of this command",
                  one.host, kept.host, job),
      {{"host", one.host}});
  return false;
}

void tell(const std::string& job, const std::string& keeper, const Json& outcome, const Say& say) {
  const Json brought = outcome.value("brought", Json::object());
  for (const auto& [files_job, count] : brought.items())
    say("lost_host_files",
        fmt::format("brought {} home out of the copies of {} on {}",
                    count_text(count.get<std::uint64_t>(), "captured file"), files_job, keeper),
        {{"host", host_of(files_job, job)}, {"keeper", keeper}, {"files", count}});
  for (const Json& file : outcome.value("left", Json::array())) {
    const std::string path = file.value("path", "");
    const auto files_job = file.value("job", std::string());
    const auto version = file.value("version", VersionNumber{0});
    say("lost_host_file_left",
        fmt::format("{} of {} version {} did not come home: {}; `backstay export {} {} -o DIR` on "
                    "{} fetches what is good of it",
                    path.empty() ? "the files" : path, files_job, version, file.value("why", ""),
                    files_job, version, keeper),
        {{"host", host_of(files_job, job)},
         {"version", version},
         {"file", path},
         {"why", file.value("why", "")}});
  }
  if (const auto more = outcome.value("left_more", std::uint64_t{0}); more > 0)
    say("lost_host_files_left", fmt::format("and {} more on {}", more, keeper), {{"files", more}});
}

std::string names_of(const std::map<std::string, VersionNumber>& files_jobs) {
  std::string names;
  for (const auto& [name, newest] : files_jobs) names += (names.empty() ? "" : ", ") + name;
  return names;
}

// Whether a keeper has left none of this job's files: only then is an older copy on another host of
// no use any more. Precondition: tell() could read the outcome.
bool brought_all(const Json& outcome, const std::string& files_job) {
  if (outcome.value("left_more", std::uint64_t{0}) > 0)
    return false;  // the outcome does not say whose these are
  return std::ranges::none_of(outcome.value("left", Json::array()),
                              [&](const Json& file) { return file.value("job", "") == files_job; });
}

}  // namespace

void bring_kept_files(const Config& config, const std::string& job, const RunHosts* hosts,
                      const Say& say) {
  constexpr double work_s = 24 * 3600;
  if (hosts == nullptr || !hosts->reach().line) return;
  // By turn, and by keeper: the newest version there of each job of files. Of several keepers of a
  // job the one with the newest version has the first turn. A keeper brings the files of several
  // hosts together, as they may have the same paths.
  std::map<std::pair<std::size_t, std::string>, std::map<std::string, VersionNumber>> steps;
  for (const auto& [files_job, kept] : find_copies(job, *hosts, say)) {
    if (!is_lost(config, job, files_job, kept, *hosts, say)) continue;
    for (std::size_t turn = 0; turn < kept.keepers.size(); ++turn)
      steps[{turn, kept.keepers[turn].second}][files_job] = kept.keepers[turn].first;
  }
  std::map<std::string, VersionNumber> brought;  // all up to this version, by a keeper before
  const auto brought_to = [&brought](const std::string& files_job) {
    const auto found = brought.find(files_job);
    return found == brought.end() ? VersionNumber{0} : found->second;
  };
  for (const auto& [step, files_jobs] : steps) {
    const std::string& keeper = step.second;
    Words words{"agent", "bring-copies", "--job", job};
    for (const auto& [files_job, newest] : files_jobs)
      words.insert(words.end(), {"--of", fmt::format("{}={}", files_job, brought_to(files_job))});
    const auto answer = hosts->ask_each({{keeper, words}}, work_s).front();
    const Json outcome = answer.ok() ? Json::parse(*answer, nullptr, false) : Json();
    const bool told = outcome.is_object() && can_read([&] { tell(job, keeper, outcome, say); });
    if (!told) {
      say("lost_host_files_wait",
          fmt::format("the files of {} are not brought home: {} has copies and did not "
                      "succeed; the next start tries again",
                      names_of(files_jobs), keeper),
          {{"keeper", keeper}});
      continue;
    }
    for (const auto& [files_job, newest] : files_jobs)
      if (brought_all(outcome, files_job))
        brought[files_job] = std::max(brought_to(files_job), newest);
  }
}

}  // namespace backstay::bin
