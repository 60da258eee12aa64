#include "bin/run/take_over.h"

#include <fmt/format.h>

#include <algorithm>

#include "bin/parts/print.h"
#include "bin/run/ranks_here.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t ranks_listed = 16;  // of a host

std::string ranks_text(const Json& processes) {
  std::vector<std::string> texts;
  for (const Json& one : processes) {
    if (texts.size() == ranks_listed) break;
    texts.push_back(fmt::format("rank {} (process {})", one.value("rank", 0), one.value("pid", 0)));
  }
  const std::size_t more = processes.size() - texts.size();
  if (more > 0) texts.push_back(fmt::format("{} more", more));
  return fmt::format("{}", fmt::join(texts, ", "));
}

bool is_silent(const Json& member) { return member.value("state", "") != "ok"; }

Result<Json> parsed(const Result<std::string>& answer) {
  if (!answer.ok()) return answer.error();
  const Json document = Json::parse(*answer, nullptr, false);
  if (document.is_object()) return document;
  return Error(Code::protocol, "its answer is not what this release expects");
}

}  // namespace

RanksAlive RanksAlive::look(const Config& config, const std::string& job, const RunHosts* hosts) {
  RanksAlive alive;
  alive.config_ = config;
  alive.job_ = job;
  alive.take("", ranks_here(config, job));
  if (hosts == nullptr) return alive;
  alive.ask(*hosts, hosts->reach().others);
  std::vector<std::string> more;
  for (const auto& [host, ranks] : alive.elsewhere()) more.push_back(host);
  alive.ask(*hosts, more);
  return alive;
}

// A host may have several names.
void RanksAlive::take(const std::string& address, const Json& answer) {
  const bool first = asked_.insert(answer.value("host", address)).second;
  if (first && !answer.value("processes", Json::array()).empty())
    found_.push_back({address, answer});
}

// A host that does not answer is left to the program, which will meet its agent.
void RanksAlive::ask(const RunHosts& hosts, const std::vector<std::string>& addresses) {
  std::vector<RunHosts::Question> questions;
  for (const std::string& address : addresses)
    questions.push_back({address, {"agent", "ranks", "--job", job_}});
  const auto answers = hosts.ask_each(questions, ranks_here_s);
  for (std::size_t i = 0; i < answers.size(); ++i)
    if (const auto answer = parsed(answers[i]); answer.ok()) take(addresses[i], *answer);
}

// Hosts that have ranks of these runs, as other agents say, and that were not asked.
std::map<std::string, std::uint64_t> RanksAlive::elsewhere() const {
  std::map<std::string, std::uint64_t> hosts;
  for (const OnHost& on : found_) {
    for (const Json& member : on.answer.value("members", Json::array())) {
      const std::uint64_t ranks = member.value("connected", std::uint64_t{0});
      const std::string host = member.value("host", "");
      if (!is_silent(member) && ranks > 0 && !asked_.contains(host)) hosts[host] = ranks;
    }
  }
  return hosts;
}

bool RanksAlive::of_others_than(Launch launch) const {
  const std::string ours = fmt::format("{:08x}", launch);
  return std::any_of(found_.begin(), found_.end(), [&ours](const OnHost& on) {
    return !on.answer.value("run", "").starts_with(ours);
  });
}

std::string RanksAlive::where() const {
  std::vector<std::string> names;
  for (const OnHost& on : found_) names.push_back(on.answer.value("host", ""));
  const bool here = found_.size() == 1 && found_.front().address.empty();
  return here ? "here" : fmt::format("on {}", fmt::join(names, ", "));
}

// A line a host.
std::string RanksAlive::list() const {
  std::string text;
  for (const OnHost& on : found_)
    text += fmt::format("\n  {}: {}", on.answer.value("host", ""),
                        ranks_text(on.answer.value("processes", Json::array())));
  for (const auto& [host, ranks] : elsewhere())
    text +=
        fmt::format("\n  {}: {}, which could not be asked for", host, count_text(ranks, "rank"));
  const Json members = found_.front().answer.value("members", Json::array());
  const auto silent = std::count_if(members.begin(), members.end(), is_silent);
  if (silent > 0)
    text += fmt::format("\n{} of the {} of that run {} not answer the others", silent,
                        count_text(found_.front().answer.value("nodes", std::uint64_t{0}), "node"),
                        silent == 1 ? "does" : "do");
  return text;
}

Json RanksAlive::processes() const {
  Json all = Json::array();
  for (const OnHost& on : found_)
    for (const Json& one : on.answer.value("processes", Json::array()))
      all.push_back({{"host", on.answer.value("host", "")},
                     {"run", on.answer.value("run", "")},
                     {"rank", one.value("rank", 0)},
                     {"pid", one.value("pid", 0)}});
  return all;
}

Error RanksAlive::refusal() const {
  return Error(
      Code::busy,
      fmt::format("a program of job {} is running {} ({}); wait for its end, or give this one "
                  "another name with --job. Where its launcher is lost, its ranks may live on for "
                  "long: the same command with --take-over ends them and goes on from the newest "
                  "version. They may as well be of a run that is alive, which would be lost with "
                  "them:{}",
                  job_, where(), count_text(processes().size(), "rank"), list()));
}

std::vector<Result<Json>> RanksAlive::end_each(const RunHosts* hosts) const {
  std::vector<Result<Json>> answers;
  std::vector<RunHosts::Question> questions;
  for (const OnHost& on : found_) {
    const std::string run = on.answer.value("run", "");
    if (on.address.empty())
      answers.push_back(end_ranks_here(config_, job_, run));
    else
      questions.push_back({on.address, {"agent", "ranks", "--job", job_, "--end", run}});
  }
  if (hosts == nullptr) return answers;
  for (const auto& answer : hosts->ask_each(questions, ranks_here_s))
    answers.push_back(parsed(answer));
  return answers;
}

Status RanksAlive::end(const RunHosts* hosts, const Say& say) const {
  const auto answers = end_each(hosts);  // in the order of found_, as this host is its first
  std::string left;
  for (std::size_t i = 0; i < found_.size(); ++i) {
    const std::string host = found_[i].answer.value("host", "");
    if (!answers[i].ok()) {
      left += fmt::format("\n  {}: {}", host, answers[i].error().message());
      continue;
    }
    const Json ended = answers[i]->value("ended", Json::array());
    const Json living = answers[i]->value("left", Json::array());
    say("take_over",
        ended.empty() ? fmt::format("ended no rank on {}", host)
                      : fmt::format("ended {} on {}", ranks_text(ended), host),
        {{"host", host}, {"processes", ended}});
    if (!living.empty()) left += fmt::format("\n  {}: {}", host, ranks_text(living));
  }
  for (const auto& [host, ranks] : elsewhere())
    say("not_taken_over",
        fmt::format("{} on {} could not be asked for, and may live on", count_text(ranks, "rank"),
                    host),
        {{"host", host}});
  if (left.empty()) return {};
  return Error(Code::busy, fmt::format("nothing was started, as ranks of job {} live on; end them "
                                       "on their hosts, then start the same command:{}",
                                       job_, left));
}

}  // namespace backstay::bin
