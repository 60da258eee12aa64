// The end of a program under `backstay run`: what is not saved, what is not at home, the summary.
#include <fmt/format.h>
#include <poll.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/collector.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/run/runner.h"
#include "bin/run/slurm.h"
#include "client/due_policy.h"
#include "client/files_job.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

constexpr double hang_up_s = 1;  // for the other ends of the lines to hosts

}  // namespace

// A job may have run to its end with nothing on the disk: its program had no reason to stop.
void Runner::say_what_is_not_saved() const {
  constexpr double patience_s = 2;
  if (hosts_ && !hosts_->starts_here()) return;
  for (const Json& version : versions_of(job_in_agent(config_, job_, "", patience_s))) {
    const std::string error = version.value("error", "");
    if (version.value("level", "") != "captured" || error.empty()) continue;
    say("not_saved",
        fmt::format("version {} is in the agent's memory only: {}", version.value("version", 0),
                    error),
        {{"version", version.value("version", 0)}});
  }
}

FirstDue Runner::first_due() const {
  const auto& checkpoint = config_.checkpoint;
  const bool by_time = checkpoint.policy == "interval" || checkpoint.policy == "daly";
  const double after_s = by_time ? client::DuePolicy(checkpoint, system_clock()).interval_s() : -1;
  return {checkpoint.policy, after_s, checkpoint.mtti_s, options_.transparent};
}

// Ranks of one of our runs were the last that connected to the agent: its log tells of them, or
// will. Else null.
Json Runner::our_run(double patience_s) const {
  Json job = job_in_agent(config_, job_, config_.storage.dir, patience_s);
  if (!job.is_object()) return nullptr;
  const RunId run = std::strtoull(job.value("run", "0").c_str(), nullptr, 16);
  return run != 0 && launch_of(run) == options_.launch ? job : Json(nullptr);
}

// By `backstay checkpoint --stop`, of which no signal came here.
bool Runner::stop_was_asked() const {
  const Json job = our_run();
  return job.is_object() && job.value("stop_requested", false);
}

RunSummary Runner::read_summary() const {
  const std::string& dir = uses_agents(config_) ? config_.storage.dir : config_.durable.dir;
  return summary_of(read_job_log(dir + "/" + job_), job_, options_.launch);
}

std::optional<RunSummary> Runner::summary() const {
  if (first_began_ns_ == 0) return std::nullopt;
  // The agent writes its log when its disk is idle.
  constexpr double patience_s = 2;
  RunSummary read = read_summary();
  const auto is_whole = [&read] { return read.ended && read.runs > 0; };
  const bool comes = !is_whole() && our_run().is_object();
  for (const std::uint64_t deadline = deadline_in(patience_s);
       comes && !is_whole() && system_clock().monotonic_ns() < deadline; read = read_summary())
    ::poll(nullptr, 0, 20);
  const bool elsewhere = hosts_ && !hosts_->runs_here();
  read.unwritten = comes && read.runs == 0;
  if (read.runs == 0 && elsewhere) return std::nullopt;  // `backstay report` brings logs together
  return read;
}

void Runner::say_summary(const RunSummary& summary, int code) const {
  const ProgramEnd end{policy_.restarts(), code, options_.language, options_.capture.any()};
  for (const std::string& line : sentences(summary, first_due(), end)) say("summary", line);
}

// Captured files may still be on their way, also where the program was killed.
bool Runner::files_are_home() {
  if (!options_.capture.any() || busy_) return true;
  bool told = false;
  const auto tell = [&](const std::string& words) {
    told = true;
    say("captured_files", words);
  };
  const Status home = settle_captured_files(config_, job_, tell, [&] { return !take_signals(); });
  if (home.ok()) return true;
  if (!told || home.error().code() == Code::again)
    say("captured_files",
        fmt::format("captured files may not be at their places yet: {}; the agent goes on, and "
                    "`backstay ls --files {}.files.HOST` shows them",
                    home.error().message(), job_));
  return false;
}

// Why no version of captured files of this command is on the disk; "": it made one without an
// error, which may not be listed yet. Nothing: it made none.
std::optional<std::string> Runner::why_no_files_version() const {
  std::optional<std::string> made;
  const std::string files = client::files_job_name(job_);
  for (const Json& version : versions_of(job_in_agent(config_, files, config_.storage.dir))) {
    if (version.value("captured_ns", std::uint64_t{0}) < first_began_ns_) continue;
    made = version.value("error", "");
    if (!made->empty()) return made;
  }
  return made;
}

// A pattern that fits no file would go unnoticed until a restart finds nothing.
void Runner::say_what_was_captured(bool succeeded) const {
  const bool through_pool = options_.capture.any() && config_.capture.close != "home";
  if (!through_pool || hosts_ || options_.quiet || first_began_ns_ == 0 || busy_) return;
  const auto [captured, words] = take_fates(config_, job_);
  const Newest newest = newest_version(config_, client::files_job_name(job_), nullptr);
  const bool is_version = newest.captured_ns >= first_began_ns_;
  const auto why = is_version ? std::optional<std::string>("") : why_no_files_version();
  if (why && !why->empty() && succeeded)
    say("nothing_captured",
        "captured files went to their places directly, as none could be written as a version: " +
            *why);
  else if (captured > 0)
    say("captured_files",
        fmt::format("{}, {}", words, captured == 1 ? "at its place" : "all at their places"),
        {{"files", captured}});
  else if (!why && succeeded)
    say("nothing_captured",
        words.empty()
            ? "no file was captured: none of 256 KiB or more that the program itself opened, wrote "
              "and closed fits --capture-files (docs/guide/files.md)"
            : fmt::format("no file was captured; of those that fit --capture-files: {} "
                          "(docs/guide/files.md#what-is-not-captured)",
                          words));
}

int Runner::finish(int code) {
  const bool home = files_are_home();
  if (home) say_what_was_captured(code == 0);
  if (!home && code == 0) code = exit_failed;
  home ? copies_.end() : copies_.cut();
  say_what_is_not_saved();
  if (stopping_)
    say("stopped",
        fmt::format("stopped; the same command starts {}", where_it_starts(newest(), true)));
  if (hosts_) hosts_->close(starts_agents() ? options_.grace_s : hang_up_s);
  const auto told = summary();
  const bool nothing_to_tell = told && told->runs == 0 && (stopping_ || busy_ || refused_);
  if (told && !options_.json && !options_.quiet && !nothing_to_tell) say_summary(*told, code);
  Json facts{{"exit_code", code}, {"restarts", policy_.restarts()}};
  if (hosts_) facts.update(hosts_->summary());
  if (told) facts.update(as_json(*told));
  if (told) facts["called_backstay"] = told->runs > 0 || told->unwritten;
  if (told && told->versions == 0) facts["why_no_version"] = why_no_version(*told, first_due());
  if (options_.json || (policy_.restarts() > 0 && code == 0))
    say("end",
        fmt::format("ended with exit code {} after {}", code,
                    count_text(policy_.restarts(), "restart")),
        facts);
  if (options_.hosts.requeue && requeue_) requeue();
  return code;
}

void Runner::requeue() {
  say("requeue", "the job goes back into the queue of Slurm");
  if (const Status done = slurm_requeue(); !done.ok())
    say("not_requeued", "it was not put back into the queue: " + done.error().message());
}

}  // namespace backstay::bin
