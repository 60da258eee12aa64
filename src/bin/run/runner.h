// A program under `backstay run`: started, watched, signalled, started again.
//
// Signals. SIGUSR1 asks the job for a checkpoint through the agent; SIGTERM and SIGHUP ask for a
// checkpoint and a stop and give the program `grace_s` to end by itself, then it gets
// SIGTERM twice and SIGKILL. SIGINT goes to the launcher. Where no agent knows the job, the signal
// itself goes to the launcher: Open MPI's mpirun passes SIGUSR1 and SIGTERM on to the ranks,
// MPICH's mpiexec ends them at SIGTERM. After SIGINT, SIGTERM or SIGHUP there is no restart.
//
// After the loss of a host the launcher has a few seconds to notice it by itself and end; then it
// is ended as above. So it has after the loss of a rank that is not modified, which the meeting of
// their companions tells of (docs/protocol/meeting.md).
#pragma once

#include <unistd.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/config.h"
#include "bin/parts/agent_link.h"
#include "bin/parts/capture.h"
#include "bin/run/child.h"
#include "bin/run/copy_lines.h"
#include "bin/run/newest.h"
#include "bin/run/output_file.h"
#include "bin/run/restart_policy.h"
#include "bin/run/run_hosts.h"
#include "bin/run/run_summary.h"
#include "meet/server.h"

namespace backstay::bin {

class RanksAlive;

struct RunOptions {
  unsigned retries = 3;
  double grace_s = 60;
  bool json = false;
  bool quiet = false;  // no summary
  Words words;
  CaptureOptions capture;           // the words contain it already
  Launch launch = 0;                // of the runs that it starts
  bool transparent = false;         // a companion saves it
  bool take_over = false;           // ranks of other runs are ended, and not refused
  bool fresh = false;               // earlier versions do not count
  VersionNumber from = 0;           // not 0: of earlier versions this one alone counts
  Language language = Language::c;  // of the program
  HostOptions hosts;
};

class Runner {
 public:
  Runner(const RunOptions& options, Config config, std::string job)
      : options_(options),
        config_(std::move(config)),
        job_(std::move(job)),
        policy_(options.retries),
        copies_(config_, job_, teller()) {}

  // Finds the hosts of the program, and checks that all can be reached. Errors: as RunHosts has.
  Status prepare(const std::optional<LauncherLine>& launcher);
  // Ranks of the job that live on are ended, or refused. Before prepare() only this host is looked
  // at. Errors: busy.
  Status clear() const;
  // The agents of an allocation of Slurm are in a job step that prepare() has started.
  bool starts_agents() const {
    return uses_agents(config_) && hosts_ != nullptr && hosts_->slurm();
  }
  // The program will need an agent on this machine, and none has been started.
  bool needs_agent() const {
    return uses_agents(config_) && (!hosts_ || (!hosts_->slurm() && hosts_->runs_here()));
  }
  // An exit code.
  Result<int> run();

 private:
  enum class Stage { running, deserted, asked, terminated, terminated_again, killed };

  void say(const char* event, const std::string& text) const;
  void say(const char* event, const std::string& text, const nlohmann::ordered_json& more) const;
  Say teller() const {
    return [this](const char* event, const std::string& text, const nlohmann::ordered_json& more) {
      say(event, text, more);
    };
  }
  int cannot_start(const Error& error) const;
  Status start();
  Status start_meeting();
  std::vector<pollfd> watched() const;
  bool take_signals();
  void note_signals();
  bool has_saved_and_ended(int code) const;
  int wait_for_end();
  void watch();
  void act(int signal);
  void enter(Stage stage);
  double wait_s() const;
  bool ask(bool stop) const;
  void ask_for_checkpoint() const;
  void interrupt();
  void stop();
  void escalate();
  void look_at_hosts();
  void look_at_ranks();
  void look_at_cut();
  bool another_run_lives();
  Status end_all(const RanksAlive& alive) const;
  Newest newest() const;
  void record_end() const;
  RunSummary read_summary() const;  // as far as the log has come
  bool from_the_beginning(const Newest& newest) const;
  std::string where_it_starts(const Newest& newest, bool same_command) const;
  std::string why_in_vain() const;
  bool try_again(int code);
  bool say_decision(RestartPolicy::Decision decision, int code, const Newest& newest,
                    const std::string& refusal) const;
  void say_what_is_not_saved() const;
  FirstDue first_due() const;
  // The summary, from the job's log on this node, of the runs that we have started.
  nlohmann::ordered_json our_run(double patience_s = answer_timeout_s) const;
  bool stop_was_asked() const;
  std::optional<RunSummary> summary() const;
  void say_summary(const RunSummary& summary, int code) const;
  bool files_are_home();
  std::optional<std::string> why_no_files_version() const;
  void say_what_was_captured(bool succeeded) const;
  bool launcher_has_refused() const;
  int finish(int code);
  void requeue();

  const RunOptions& options_;
  const Config config_;
  const std::string job_;
  RestartPolicy policy_;
  std::unique_ptr<RunHosts> hosts_;
  std::optional<LauncherKind> launcher_;
  std::optional<LauncherKind> companions_of_;  // the launcher starts each with a companion
  std::unique_ptr<meet::Server> meeting_;      // of the present attempt
  std::uint64_t look_at_cut_ns_ = 0;           // when that is due again
  std::uint64_t told_cut_ = 0;                 // the last one that takes long
  std::string deserted_;                       // why the launcher is in the stage of that name
  CopyLines copies_;                           // ends before hosts_
  const OutputFile output_{STDOUT_FILENO};     // as it was before the first attempt
  Child child_;
  Stage stage_ = Stage::running;
  std::uint64_t deadline_;                      // of the stage
  std::uint64_t began_ns_ = 0;                  // the present attempt
  std::uint64_t ended_ns_ = 0;                  // by the wall's clock: of the last attempt
  std::uint64_t first_began_ns_ = 0;            // by the wall's clock; 0: nothing was started
  std::optional<VersionNumber> asked_version_;  // the newest when MPICH's ranks were asked to stop
  bool stopping_ = false;
  bool requeue_ = false;
  bool busy_ = false;        // another run has the job
  bool refused_ = false;     // by the launcher, which has started nothing
  bool taken_over_ = false;  // ranks of another run that had not connected before the start
};

}  // namespace backstay::bin
