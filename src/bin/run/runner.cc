#include "bin/run/runner.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/tell.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/collector.h"
#include "bin/parts/exit_code.h"
#include "bin/parts/print.h"
#include "bin/run/kept_copies.h"
#include "bin/run/lost_hosts.h"
#include "bin/run/slurm.h"
#include "bin/run/storage_here.h"
#include "bin/run/take_over.h"
#include "client/due_policy.h"
#include "store/event_log.h"

namespace backstay::bin {
namespace {

using Json = nlohmann::ordered_json;

constexpr double deserted_s = 10;     // for a launcher to notice a lost host by itself
constexpr double after_signal_s = 5;  // for a launcher to end
constexpr double srun_ends_s = 15;    // waits for all nodes, then tells Slurm of the step's end
constexpr double long_cut_s = 5;      // run tells the user of a longer one
constexpr double look_at_cut_s = 2;
constexpr double cut_answer_s = 0.5;  // an agent that hangs keeps no signal waiting

}  // namespace

void Runner::say(const char* event, const std::string& text) const {
  say(event, text, Json::object());
}

// Messages go to stderr: stdout belongs to the program.
void Runner::say(const char* event, const std::string& text, const Json& more) const {
  if (!options_.json) {
    to_stderr(fmt::format("{}{}\n", run_line_begin, text));
    return;
  }
  Json line{{"event", event}, {"job", job_}, {"text", text}};
  line.update(more);
  to_stderr(fmt::format("{}\n", line.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

Status Runner::prepare(const std::optional<LauncherLine>& launcher) {
  if (launcher) launcher_ = launcher->kind;
  if (options_.transparent) companions_of_ = launcher_;
  BACKSTAY_ASSIGN(hosts_, RunHosts::make(options_.hosts, options_.words, launcher, teller()));
  if (options_.hosts.requeue && !starts_agents())
    return Error(Code::invalid, "--requeue is for srun in an allocation of Slurm");
  if (!hosts_) return {};
  BACKSTAY_TRY(hosts_->reachable());
  return options_.capture.any() ? hosts_->can_capture(options_.capture) : Status();
}

Status Runner::clear() const {
  const RanksAlive alive = RanksAlive::look(config_, job_, hosts_.get());
  if (alive.none()) return {};
  if (options_.take_over) return end_all(alive);
  const Error refusal = alive.refusal();
  if (options_.json) say("busy", refusal.message(), {{"processes", alive.processes()}});
  return refusal;
}

Status Runner::end_all(const RanksAlive& alive) const { return alive.end(hosts_.get(), teller()); }

Status Runner::start() {
  copies_.cut();
  if (options_.capture.any()) bring_kept_files(config_, job_, hosts_.get(), teller());
  bring_files_of_lost_hosts(config_, job_, hosts_.get(), teller());
  began_ns_ = system_clock().monotonic_ns();
  if (companions_of_) BACKSTAY_TRY(start_meeting());
  if (!hosts_) return child_.start(options_.words);
  BACKSTAY_ASSIGN(const Words words, hosts_->command());
  if (options_.capture.any()) copies_.lay(*hosts_);
  return child_.start(words);
}

// Each attempt has one of its own, so that no rank of an earlier one comes to it.
Status Runner::start_meeting() {
  meet::ServerOptions options;
  options.several_hosts = hosts_ || *companions_of_ == LauncherKind::slurm;
  options.device = config_.network.device;
  meeting_.reset();
  BACKSTAY_ASSIGN(meeting_, meet::Server::start(options));
  ::setenv(meet::addresses_variable, meeting_->addresses().c_str(), 1);
  ::setenv(meet::secret_variable, meeting_->secret().c_str(), 1);
  return {};
}

std::vector<pollfd> Runner::watched() const {
  auto all = hosts_ ? hosts_->fds() : std::vector<pollfd>{};
  if (meeting_ && stage_ == Stage::running) all.push_back({meeting_->descriptor(), POLLIN, 0});
  return all;
}

Result<int> Runner::run() {
  const std::uint64_t now_ns = system_clock().wall_ns();
  if (options_.capture.any()) (void)take_fates(config_, job_);  // of a command before this one
  for (;;) {
    if (const Status started = start(); !started.ok()) return finish(cannot_start(started.error()));
    if (first_began_ns_ == 0) first_began_ns_ = now_ns;
    int code = wait_for_end();
    note_signals();
    stopping_ = stopping_ || (code != 0 && stop_was_asked());
    if (stopping_ && has_saved_and_ended(code)) code = 128 + SIGTERM;
    if (code == 0 || stopping_) return finish(code);
    busy_ = another_run_lives();
    if (busy_) return finish(exit_refused);
    if (!try_again(code)) return finish(code);
    note_signals();
    if (stopping_) return finish(code);
  }
}

// A launcher may kill the other ranks once one has ended, and tell that (MPICH's does so by 9). Or
// it tells that a rank has left MPI without a word: MPICH's then ends with 1, Intel's with 255,
// whatever the rank's code was. A program may end so, too, so that counts only behind a version.
bool Runner::has_saved_and_ended(int code) const {
  const bool untouched = stage_ == Stage::asked || stage_ == Stage::running;
  if (!options_.transparent || !untouched) return false;
  if (code == SIGKILL || code == 128 + SIGKILL) return true;
  const bool has_left_mpi = code == 1 || code == 255;
  return has_left_mpi && asked_version_ && newest().version > *asked_version_;
}

// Takes signals that came while captured files were awaited: the program has ended before, and the
// signals stop nothing but the wait. True: one came.
bool Runner::take_signals() {
  bool came = false;
  while (const int signal = child_.pending()) came = came || signal != SIGUSR1;
  return came;
}

// Takes signals that came with the program's end, or while hosts were asked: there is no program
// left to forward them to, and no new one is started.
void Runner::note_signals() {
  while (const int signal = child_.pending()) {
    if (signal == SIGUSR1) continue;
    stopping_ = true;
    if (signal != SIGINT) requeue_ = true;
  }
}

int Runner::cannot_start(const Error& error) const {
  const bool missing = error.code() == Code::not_found;
  const char* hint = missing                            ? "; is it in PATH?"
                     : error.code() == Code::permission ? "; is it a program?"
                                                        : "";
  say("cannot_start", error.message() + hint);
  return missing ? exit_no_program : exit_cannot_execute;
}

int Runner::wait_for_end() {
  enter(Stage::running);
  watch();
  ended_ns_ = system_clock().wall_ns();
  auto ours = hosts_ ? hosts_->processes() : std::vector<pid_t>{};
  const auto copies = copies_.processes();
  ours.insert(ours.end(), copies.begin(), copies.end());
  if (const int count = child_.end_leftovers(ours); count > 0)
    say("leftovers", fmt::format("ended {} that the launcher left behind",
                                 count_text(static_cast<std::uint64_t>(count), "process")));
  return child_.end()->exit_code;
}

void Runner::watch() {
  for (;;) {
    const int signal = child_.wait(wait_s(), watched());
    if (signal == SIGCHLD) return;
    if (signal != 0) {
      act(signal);
      continue;
    }
    look_at_hosts();
    look_at_ranks();
    look_at_cut();
    copies_.step();
    if (system_clock().monotonic_ns() >= deadline_) escalate();
  }
}

void Runner::act(int signal) {
  if (signal == SIGUSR1) return ask_for_checkpoint();
  signal == SIGINT ? interrupt() : stop();
}

void Runner::enter(Stage stage) {
  stage_ = stage;
  const double patience_s = stage == Stage::running    ? -1
                            : stage == Stage::deserted ? deserted_s
                            : stage == Stage::asked    ? options_.grace_s
                            : starts_agents()          ? srun_ends_s
                                                       : after_signal_s;
  deadline_ = deadline_in(patience_s);
}

// Seconds until the stage is over or the hosts must be asked.
double Runner::wait_s() const {
  const double hosts_s = hosts_ ? hosts_->next_step_s() : -1;
  const double copies_s = copies_.next_step_s();
  double step_s =
      hosts_s < 0 || copies_s < 0 ? std::max(hosts_s, copies_s) : std::min(hosts_s, copies_s);
  if (options_.transparent && (step_s < 0 || step_s > look_at_cut_s)) step_s = look_at_cut_s;
  if (deadline_ == no_deadline) return step_s;
  const std::uint64_t now = system_clock().monotonic_ns();
  const double left_s = deadline_ > now ? static_cast<double>(deadline_ - now) * 1e-9 : 0;
  return step_s < 0 ? left_s : std::min(left_s, step_s);
}

void Runner::look_at_hosts() {
  if (!hosts_ || !hosts_->lost() || stage_ != Stage::running) return;
  deserted_ = "the launcher still waits for the lost host; it is ended";
  enter(Stage::deserted);
}

void Runner::look_at_ranks() {
  if (!meeting_ || stage_ != Stage::running) return;
  const auto loss = meeting_->loss();
  if (!loss) return;
  deserted_ = fmt::format("{}, and the launcher lets the others run; it is ended", loss->text());
  enter(Stage::deserted);
}

// The agent of this host says whether a cut takes long; an agent of another host is not asked.
void Runner::look_at_cut() {
  const std::uint64_t now = system_clock().monotonic_ns();
  if (!options_.transparent || now < look_at_cut_ns_) return;
  look_at_cut_ns_ = deadline_in(look_at_cut_s);
  const Json job = our_run(cut_answer_s);
  const Json cut = job.is_object() ? job.value("cut", Json()) : Json();
  if (!cut.is_object() || cut.value("seconds", 0.0) < long_cut_s) return;
  const auto which = cut.value("cut", std::uint64_t{0});
  if (std::exchange(told_cut_, which) == which) return;
  say("cut", fmt::format("a cut is under way, and ranks wait for it: {}", cut.value("awaits", "")));
}

bool Runner::ask(bool stop) const {
  // Only the agent of rank 0's node can reach rank 0.
  if (hosts_ && !hosts_->starts_here()) {
    Words words{"checkpoint", job_};
    if (stop) words.emplace_back("--stop");
    return !hosts_->ask(words, 1).empty();
  }
  auto agent = AgentLink::connect(config_);
  return agent.ok() && agent->tell(wire::Request{job_, stop}).ok();
}

void Runner::ask_for_checkpoint() const {
  if (ask(false)) return say("checkpoint", "asked the program for a checkpoint");
  say("forward", "no agent knows this job yet; SIGUSR1 goes to the launcher");
  child_.send(SIGUSR1);
}

void Runner::interrupt() {
  if (stopping_) return escalate();
  stopping_ = true;
  enter(Stage::terminated);
  child_.send(SIGINT);
}

void Runner::stop() {
  stopping_ = requeue_ = true;
  if (stage_ != Stage::running) return escalate();
  if (companions_of_ == LauncherKind::mpich) asked_version_ = newest().version;
  if (ask(true)) {
    enter(Stage::asked);
    return say("stop", fmt::format("asked the program to save and end; it has {}",
                                   duration_text(options_.grace_s)));
  }
  escalate();
}

void Runner::escalate() {
  if (stage_ == Stage::deserted) {
    // The program is lost anyway, so there is no second SIGTERM.
    say("deserted", deserted_);
    enter(Stage::terminated_again);
    child_.send(SIGTERM);
  } else if (stage_ == Stage::running || stage_ == Stage::asked) {
    enter(Stage::terminated);
    child_.send(SIGTERM);
  } else if (stage_ == Stage::terminated) {
    enter(Stage::terminated_again);
    child_.send(SIGTERM);
  } else {
    enter(Stage::killed);
    say("kill", "the launcher did not end; killed");
    child_.send(SIGKILL);
  }
}

// Another `backstay run` has started the job or has taken it over, and owns it now. Ranks of ours
// may take a while to end. With --take-over, ranks may also have connected only after clear() had
// looked: they are ended once; more would be a fight of two that both take over.
bool Runner::another_run_lives() {
  const RanksAlive alive = RanksAlive::look(config_, job_, nullptr);
  if (!alive.of_others_than(options_.launch)) return false;
  const bool first = options_.take_over && !std::exchange(taken_over_, true);
  if (first && end_all(alive).ok()) return false;
  say("busy", "not tried again: " + alive.refusal().message());
  return true;
}

// For the event log (docs/format/events.md).
void Runner::record_end() const {
  const Json job = our_run();
  if (!job.is_object()) return;
  const Json line{{"event", "attempt_ended"},
                  {"t_ns", ended_ns_},
                  {"job", job_},
                  {"run", job.value("run", "")},
                  {"node", job.value("node", 0)}};
  store::EventLog(config_.storage.dir + "/" + job_).append(line.dump());
}

Newest Runner::newest() const { return newest_version(config_, job_, hosts_.get()); }

bool Runner::from_the_beginning(const Newest& newest) const {
  return newest.version == 0 || (options_.fresh && newest.captured_ns < first_began_ns_);
}

std::string Runner::where_it_starts(const Newest& newest, bool same_command) const {
  const std::string text = text_of(newest, stopping_ ? 0 : read_summary().failed_ns);
  if (newest.version == 0 || (!options_.fresh && options_.from == 0)) return text;
  const char* option = options_.fresh ? "--fresh" : "--from";
  const std::string wish =
      options_.fresh ? "from the beginning" : fmt::format("from version {}", options_.from);
  if (same_command) return fmt::format("{}; without {} {}", wish, option, text);
  const bool none_since = newest.captured_ns < first_began_ns_;
  return none_since ? fmt::format("{}, as {} asks", wish, option) : text;
}

// Why another start would fail as this one did; "" where it need not.
std::string Runner::why_in_vain() const {
  const Status storage = needs_agent() ? check_storage_here(config_, job_) : Status();
  return storage.ok() ? refusal_since(config_, job_, began_ns_, hosts_.get())
                      : storage.error().message();
}

// It has ended by itself, has waited for no child, and no rank has connected: it would end so
// again, and has said why. srun starts its ranks without a child, and ranks on other hosts alone
// are no children of its either.
bool Runner::launcher_has_refused() const {
  const bool has_children =
      launcher_ && *launcher_ != LauncherKind::slurm && (!hosts_ || hosts_->runs_here());
  const ChildEnd& end = *child_.end();
  return has_children && end.childless && end.signal == 0 && stage_ == Stage::running &&
         !our_run().is_object();
}

bool Runner::try_again(int code) {
  const auto next = hosts_ ? hosts_->replace() : RunHosts::Next::same;
  refused_ = next == RunHosts::Next::same && launcher_has_refused();
  if (refused_) {
    if (options_.json)
      say("not_started", "the launcher has started nothing; not tried again",
          {{"exit_code", code}});
    return false;
  }
  const Newest newest = this->newest();
  if (next == RunHosts::Next::too_few) {
    requeue_ = true;
    say("gave_up",
        fmt::format("giving up; the same command starts {}", where_it_starts(newest, true)),
        {{"exit_code", code}, {"version", newest.version}});
    return false;
  }
  const bool lost = next == RunHosts::Next::replaced;
  const std::string refusal = lost ? "" : why_in_vain();
  const auto decision = policy_.after_failure(newest.version, lost, !refusal.empty());
  const bool again = say_decision(decision, code, newest, refusal);
  if (again && options_.transparent && from_the_beginning(newest)) output_.cut_back();
  return again;
}

bool Runner::say_decision(RestartPolicy::Decision decision, int code, const Newest& newest,
                          const std::string& refusal) const {
  const std::string what =
      code > 128 && code < 128 + NSIG
          ? fmt::format("failed (exit code {}, as for signal {})", code, code - 128)
          : fmt::format("failed (exit code {})", code);
  const Json more{
      {"exit_code", code}, {"restarts", policy_.restarts()}, {"version", newest.version}};
  if (decision == RestartPolicy::Decision::restart) {
    say("restart",
        fmt::format("{}; restart {} of {} {}", what, policy_.restarts(), options_.retries,
                    where_it_starts(newest, false)),
        more);
    ::setenv("BACKSTAY_ATTEMPT", std::to_string(policy_.restarts()).c_str(), 1);
    record_end();
    return true;
  }
  if (decision == RestartPolicy::Decision::refused)
    say("refused",
        fmt::format("{}; not tried again, as it would be refused again: {}", what, refusal), more);
  else if (decision == RestartPolicy::Decision::crash_loop)
    say("crash_loop",
        fmt::format("{}; giving up: the last two restarts failed before they saved a new "
                    "version. Look at "
                    "the program's own messages; it would start {}",
                    what, where_it_starts(newest, false)),
        more);
  else
    say("gave_up",
        fmt::format("{}; giving up after {}. The same command starts {}", what,
                    count_text(policy_.restarts(), "restart"), where_it_starts(newest, true)),
        more);
  return false;
}

}  // namespace backstay::bin
