#include "bin/run/run_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <utility>

#include "bin/parts/print.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

// As in docs/guide/getting-started.md.
constexpr std::array lines_of_python = {
    "these lines make a program save (docs/guide/getting-started.md):",
    "  with backstay.init(comm):                      comm: of mpi4py; none: one process",
    "      backstay.protect(\"u\", u)                   for each numpy array and the step",
    "      backstay.restart()                         once, before the loop",
    "      if backstay.due(): backstay.checkpoint()   in the loop"};
constexpr std::array lines_of_c = {
    "these lines make a program save (docs/guide/getting-started.md):",
    "  backstay_init_mpi(MPI_COMM_WORLD, NULL);              after MPI_Init",
    "  backstay_protect(\"u\", u, n, BACKSTAY_DOUBLE);          for each array and the step",
    "  backstay_restart(&version);                           once, before the loop",
    "  if (backstay_due()) backstay_checkpoint();            in the loop",
    "  backstay_finalize();                                  before MPI_Finalize"};
// As in docs/guide/transparent.md and docs/guide/files.md.
constexpr std::array lines_without_a_change = {
    "or leave the program as it is (docs/guide/transparent.md, docs/guide/files.md):",
    "  backstay run --transparent -- ...             saves its whole processes",
    "  backstay run --capture-files 'GLOB' -- ...    saves the files that it writes"};

constexpr const char* levels[] = {"local", "protected", "durable"};

double seconds_between(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) * 1e-9 : 0;
}

class LogReader {
 public:
  void add(const Json& event) {
    const std::string kind = event.at("event");
    const std::uint64_t at = event.at("t_ns");
    const std::string run = event.value("run", "");
    if (kind == "run_begin") begin(run, at);
    if (kind == "attempt_ended") attempt_ended_ns_ = at;
    if (!runs_.contains(run)) return;
    if (kind == "cut_begin") cuts_[at] = UINT64_MAX;
    if (kind == "cut_end") cut_ended(event, at);
    if (kind == "captured") captured(event, run, at);
    if (kind == "restart_begin" && stands_.failed != 0 && stands_.reads == 0) stands_.reads = at;
    if (kind == "capture_begin" || kind == "captured" || kind == "run_end") computes();
    if (kind == "capture_failed") summary_.why_not = event.value("why", "");
    if (kind == "cannot_save") {
      summary_.why_not = "the program could not be saved, because " + event.value("why", "");
    }
    if (kind == "restored") restored(event, at);
    if (kind == "refused") runs_[run].refused = summary_.refused = true;
    if (kind == "rank_left" && event.value("lost", false)) lost(run, at);
    if (kind == "rank_left" || kind == "run_end") runs_[run].end_ns = at;
    if (kind == "run_end" && run == last_run_) summary_.ended = true;
    if (std::ranges::find(levels, kind) != std::end(levels))
      reached_[kind].insert(event.value("version", VersionNumber{0}));
  }

  RunSummary result() {
    summary_.runs = static_cast<unsigned>(runs_.size());
    summary_.versions = versions_.size();
    summary_.cuts = cuts_.size();
    for (const auto& [name, run] : runs_) {
      const double s = seconds_between(run.begin_ns, run.end_ns);
      summary_.running_s += s;
      summary_.longest_run_s = std::max(summary_.longest_run_s, s);
    }
    if (!versions_.empty()) summary_.newest = versions_.rbegin()->first;
    const bool ended_so = failure_ && counted_s_ == 0;
    if (ended_so) count_lost(versions_.empty() ? 0 : versions_.rbegin()->second);
    summary_.newest_level = "captured";
    for (const char* level : levels) {
      const auto& reached = reached_[level];
      summary_.reached[level] = static_cast<std::uint64_t>(std::ranges::count_if(
          versions_, [&](const auto& one) { return reached.contains(one.first); }));
      if (reached.contains(summary_.newest)) summary_.newest_level = level;
    }
    return summary_;
  }

 private:
  struct Run {
    std::uint64_t begin_ns = 0, end_ns = 0, lost_ns = 0;
    bool refused = false;  // its ranks could not use what was saved: no failure
  };

  // Called again if another agent takes the node over.
  void begin(const std::string& run, std::uint64_t at) {
    const auto before = runs_.find(last_run_);
    const auto [place, fresh] = runs_.try_emplace(run);
    summary_.ended = summary_.refused = false;
    last_run_ = run;
    if (!fresh) return;
    summary_.from = 0;
    if (before != runs_.end()) stands_still(before->second.end_ns);  // where no loss was seen
    const std::uint64_t ended = std::exchange(attempt_ended_ns_, 0);
    if (stands_.failed != 0) {
      if (stands_.ended == 0)
        stands_.ended = std::clamp(ended, stands_.failed, std::max(at, stands_.failed));
      stands_.began = at;
      stands_.reads = 0;
    }
    place->second = {.begin_ns = at, .end_ns = at};
    if (failure_) counted_s_ = count_lost(failure_->begin_ns);
  }

  // A rank may be held up as soon as its cut begins.
  void captured(const Json& event, const std::string& run, std::uint64_t at) {
    double longest_s = 0;
    std::uint64_t begin_ns = at;
    for (const Json& rank : event.value("ranks", Json::array())) {
      const std::uint64_t from = rank.value("begin_ns", at);
      const std::uint64_t to = rank.value("by", "") == "fork"
                                   ? from + rank.value("stopped_ns", std::uint64_t{0})
                                   : rank.value("end_ns", from);
      longest_s = std::max(longest_s, seconds_between(begin_of_wait(from), to));
      begin_ns = std::min(begin_ns, from);
    }
    add_wait(longest_s, event.at("version"));
    versions_[event.at("version")] = begin_ns;
    runs_[run].end_ns = std::max(runs_[run].end_ns, at);
  }

  std::uint64_t begin_of_wait(std::uint64_t capture_ns) const {
    const auto next = cuts_.upper_bound(capture_ns);
    if (next == cuts_.begin()) return capture_ns;
    const auto& [begin_ns, end_ns] = *std::prev(next);
    return capture_ns <= end_ns ? begin_ns : capture_ns;
  }

  // The wait for one that has saved is that for its version.
  void cut_ended(const Json& event, std::uint64_t at) {
    if (!cuts_.empty()) cuts_.rbegin()->second = at;
    if (!event.value("saved", false)) add_wait(event.value("seconds", 0.0), 0);
  }

  void add_wait(double seconds, VersionNumber version) {
    summary_.waited_s += seconds;
    if (seconds <= summary_.longest_wait_s) return;
    summary_.longest_wait_s = seconds;
    summary_.longest_wait = version;
  }

  void lost(const std::string& run, std::uint64_t at) {
    Run& lost = runs_[run];
    if (lost.lost_ns != 0 || lost.refused) return;
    lost.lost_ns = at;
    stands_still(at);
    summary_.failed_ns = at;
    ++summary_.failures;
    failure_ = lost;
    counted_s_ = 0;
  }

  // The work of the failed run after `from_ns`.
  double count_lost(std::uint64_t from_ns) {
    const double s = seconds_between(std::max(from_ns, failure_->begin_ns), failure_->lost_ns);
    summary_.lost_s += s;
    return s;
  }

  void restored(const Json& event, std::uint64_t at) {
    if (stands_.began != 0) goes_on(stands_.reads == 0 ? at : stands_.reads, at);
    summary_.from = event.value("version", VersionNumber{0});
    const auto version = versions_.find(summary_.from);
    if (!failure_ || version == versions_.end()) return;
    summary_.lost_s -= counted_s_;
    count_lost(version->second);
    failure_.reset();
  }

  // A run that has lost a rank before it had its data has not computed; one that asked for none
  // has. Of several failures before the next computing the first counts.
  void stands_still(std::uint64_t at) {
    computes();
    if (stands_.failed == 0) stands_.failed = at;
  }

  void computes() {
    if (stands_.began != 0 && stands_.reads == 0) goes_on(stands_.began, stands_.began);
  }

  void goes_on(std::uint64_t reads, std::uint64_t at) {
    const std::uint64_t moments[] = {stands_.failed, stands_.ended, stands_.began, reads, at};
    for (std::size_t i = 0; i < summary_.restarting.size(); ++i)
      summary_.restarting[i] += seconds_between(moments[i], moments[i + 1]);
    stands_ = {};
  }

  RunSummary summary_;
  struct {
    std::uint64_t failed = 0, ended = 0, began = 0, reads = 0;
  } stands_;  // still since it failed; 0: not, or not yet
  std::map<std::string, Run> runs_;
  std::string last_run_;
  std::uint64_t attempt_ended_ns_ = 0;               // 0: the next attempt's run has begun
  std::map<VersionNumber, std::uint64_t> versions_;  // -> when its capture began
  std::map<std::uint64_t, std::uint64_t> cuts_;      // begin -> end
  // Also versions of earlier runs. A version that needs older ones is local before it is captured.
  std::map<std::string, std::set<VersionNumber>> reached_;
  std::optional<Run> failure_;  // the last one, until a restart has brought something back
  double counted_s_ = 0;        // of it, as if no version were brought back
};

// A version that is in memory alone when a newer one comes is not written. So fewer versions are
// local than were taken; readers took that for a loss.
std::string rest_text(const RunSummary& summary) {
  const std::uint64_t local = summary.reached.at("local");
  if (local >= summary.versions) return "";
  if (summary.newest_level == "captured") return " so far";
  const std::uint64_t rest = summary.versions - local;
  if (rest == 1)
    return " (a newer one replaced the other before it was written; nothing is lost by that)";
  return fmt::format(
      " (newer ones replaced the other {} before they were written; nothing is lost by that)",
      rest);
}

std::string levels_text(const RunSummary& summary) {
  std::string text;
  for (const std::string level : levels) {
    const std::uint64_t count = summary.reached.at(level);
    if (count > 0) text += fmt::format(", {} {}", count, level);
    if (count > 0 && level == "local") text += rest_text(summary);
  }
  return text.empty() ? ", none on a disk yet" : text;
}

// Two significant digits, but all digits before the point: 99.7 is "100", not "1e+02".
std::string number_text(double number) {
  return number < 10 ? fmt::format("{:.2g}", number) : fmt::format("{:.0f}", number);
}

std::string share_text(double part, double whole) {
  return whole > 0 ? number_text(100 * part / whole) + " %" : "0 %";
}

std::string wait_text(double seconds) {
  return seconds < 0.1 ? number_text(1e3 * seconds) + " ms" : duration_text(seconds);
}

std::string restart_text(const RunSummary& summary) {
  if (summary.restarting_s() <= 0) return "";
  const auto& [noticing, starting, init, reading] = summary.restarting;
  return fmt::format(", which took {} (noticing {}, starting {}, init {}, reading {})",
                     wait_text(summary.restarting_s()), wait_text(noticing), wait_text(starting),
                     wait_text(init), wait_text(reading));
}

std::string longest_text(const RunSummary& summary) {
  if (summary.cuts == 0) return "";
  if (summary.longest_wait == 0) return " (for a cut that was given up)";
  return fmt::format(" (for {})", summary.longest_wait);
}

std::string shorter(const FirstDue& due) {
  if (due.policy == "interval") return "; for versions sooner: --interval with fewer seconds";
  return due.policy == "daly" ? "; for versions sooner: --interval SECONDS, or checkpoint.mtti_s"
                              : "";
}

// For a program that never called Backstay. One that failed has perhaps not come to its call: then
// its own messages matter, and its lines are in the guide.
void add_how_to_save(const ProgramEnd& end, std::vector<std::string>& lines) {
  if (end.exit_code != 0) {
    lines.push_back(
        fmt::format("it failed (exit code {}) before it called Backstay, if it does; "
                    "docs/guide/getting-started.md shows how a program calls it",
                    end.exit_code));
  } else {
    const auto add = [&lines](const auto& more) {
      lines.insert(lines.end(), more.begin(), more.end());
    };
    end.language == Language::python ? add(lines_of_python) : add(lines_of_c);
    add(lines_without_a_change);
  }
}

}  // namespace

RunSummary summary_of(const std::vector<std::string>& lines, const std::string& job,
                      Launch launch) {
  LogReader reader;
  const std::string ours = fmt::format("{:08x}", launch);  // how its runs begin
  for (const std::string& line : lines) {
    const Json event = Json::parse(line, nullptr, false);
    try {
      const bool of_job = event.is_object() && event.at("job") == job;
      if (of_job && event.value("run", "").starts_with(ours)) reader.add(event);
    } catch (const Json::exception&) {
      continue;  // a line that does not follow docs/format/events.md
    }
  }
  return reader.result();
}

std::string why_no_version(const RunSummary& summary, const FirstDue& due) {
  if (summary.versions > 0) return "";
  if (summary.unwritten)
    return "what was saved is not known, as the event log does not show it, or not yet: "
           "`backstay ls` shows the versions";
  if (summary.runs == 0 && due.transparent)
    return "no version was taken: the program was refused, or was not saved before its end";
  if (summary.runs == 0)
    return "no version was taken: as far as this node's event log shows, no rank called Backstay, "
           "or each was refused";
  if (summary.refused) return "no version was taken: what was saved before was refused";
  const std::string ran =
      fmt::format("no version was taken in {}", duration_text(summary.longest_run_s));
  if (!summary.why_not.empty()) return ran + ": " + summary.why_not;
  if (due.policy == "request")
    return ran + ": checkpoint.policy is request, and none was requested (backstay checkpoint JOB)";
  if (due.after_s < 0)
    return ran + ": checkpoint.policy is calls, and backstay_due() was not called that often";
  if (summary.longest_run_s < due.after_s)
    return fmt::format("{}: the first would have been due after {} (checkpoint.policy {}{}){}", ran,
                       duration_text(due.after_s), due.policy,
                       due.policy == "daly" ? ", mtti_s " + duration_text(due.mtti_s) : "",
                       shorter(due));
  if (due.transparent)
    return fmt::format("{}, and one was due after {}: the program ended while it was to be saved",
                       ran, duration_text(due.after_s));
  if (summary.from != 0)
    return fmt::format(
        "{}: the program went on from version {} and ended before it saved again; nothing may have "
        "been left to compute",
        ran, summary.from);
  return fmt::format(
      "{}, and one was due after {}: does the program call backstay_due() and "
      "backstay_checkpoint() in its loop?",
      ran, duration_text(due.after_s));
}

std::vector<std::string> sentences(const RunSummary& summary, const FirstDue& due,
                                   const ProgramEnd& end) {
  std::vector<std::string> lines;
  if (summary.runs == 0 && end.captures) return {};  // files need no call
  if (summary.versions == 0) {
    lines.push_back(why_no_version(summary, due));
    if (summary.runs == 0 && !due.transparent && !summary.unwritten) add_how_to_save(end, lines);
  } else {
    lines.push_back(fmt::format("{} in {}{}; the newest, {}, is {}",
                                count_text(summary.versions, "version"),
                                duration_text(summary.running_s), levels_text(summary),
                                summary.newest, summary.newest_level));
    lines.push_back(fmt::format("the program waited {} of its time for them, {} at most{}",
                                share_text(summary.waited_s, summary.running_s),
                                wait_text(summary.longest_wait_s), longest_text(summary)));
  }
  // A program that its user ends by a signal is saved first: no work is lost that was wanted.
  const bool ended_at_wish = end.exit_code == 128 + SIGTERM || end.exit_code == 128 + SIGINT;
  const bool failed = summary.failures > 0 && !ended_at_wish;
  if (summary.runs > 0 && (end.restarts > 0 || failed)) {
    lines.push_back(fmt::format("{}{}; {} of work lost", count_text(end.restarts, "restart"),
                                restart_text(summary), duration_text(summary.lost_s)));
  }
  return lines;
}

nlohmann::ordered_json as_json(const RunSummary& summary) {
  return {{"versions", summary.versions},
          {"newest", summary.newest},
          {"newest_level", summary.versions == 0 ? "none" : summary.newest_level},
          {"local", summary.reached.at("local")},
          {"protected", summary.reached.at("protected")},
          {"durable", summary.reached.at("durable")},
          {"running_s", summary.running_s},
          {"waited_s", summary.waited_s},
          {"longest_wait_s", summary.longest_wait_s},
          {"longest_wait_version", summary.longest_wait},
          {"cuts", summary.cuts},
          {"lost_s", summary.lost_s},
          {"restarting_s", summary.restarting_s()},
          {"noticing_s", summary.restarting[0]},
          {"launching_s", summary.restarting[1]},
          {"init_s", summary.restarting[2]},
          {"reading_s", summary.restarting[3]},
          {"failures", summary.failures}};
}

std::vector<std::string> read_job_log(const std::string& job_folder) {
  std::vector<std::string> lines;
  for (const char* name : {"/events.1.jsonl", "/events.jsonl"}) {
    std::error_code ignored;  // a pipe of that name would make us wait without end
    if (!std::filesystem::is_regular_file(job_folder + name, ignored)) continue;
    std::ifstream file(job_folder + name);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
  }
  return lines;
}

}  // namespace backstay::bin
