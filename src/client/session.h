// A program's session with the agent of its node: the work of the functions of backstay.h.
//
// One thread at a time, guarded by api.cc. Functions marked collective block until all ranks have
// called them and return the same code on all of them. The call that needs an agent notices that it
// died: that call fails with agent_lost on all ranks and says so once on stderr; the next
// checkpoint or restart connects again or starts a new agent. A restart that loses its agent does
// so itself, once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "backstay/backstay.h"
#include "base/config.h"
#include "base/ids.h"
#include "base/result.h"
#include "client/attach.h"
#include "client/capture.h"
#include "client/connection.h"
#include "client/due.h"
#include "client/files.h"
#include "client/group.h"
#include "client/job_start.h"
#include "client/origin.h"
#include "client/program_session.h"
#include "client/regions.h"
#include "client/restart_loop.h"
#include "client/restore.h"
#include "client/run_mark.h"
#include "client/saved_streams.h"
#include "client/streams.h"

namespace backstay::client {

// Which process copies the objects of a rank into the pool. This one touches its part of the pool
// once it is connected.
enum class Copier { this_process, another };

class Session final : public ProgramSession {
 public:
  // Collective. `config` may be NULL. On failure `group` is not released.
  // Errors: config, agent_lost, protocol, busy, permission, long_path (of the socket),
  // unsupported (a strategy without agents is configured).
  static Result<std::unique_ptr<Session>> start(const Group& group, const char* config,
                                                Copier copier = Copier::this_process);
  // The same of a job that has begun.
  static Result<std::unique_ptr<Session>> start(const Group& group, JobStart job,
                                                Copier copier = Copier::this_process);
  ~Session() override;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  Status protect(const char* name, void* data, const backstay_array* array,
                 backstay_type type) override;
  Status unprotect(const std::string& name) override { return regions_.remove(name); }
  Result<std::string> route_file(const std::string& name, std::size_t path_bytes) override {
    return files_.route(name, path_bytes);
  }
  Result<StreamSession> streams() override;

  bool due() override { return due_->call(); }
  bool stop_requested() const override { return due_->stop_requested(); }
  Status checkpoint() override;
  Result<VersionNumber> restart() override;
  // Waits for local if configured, then says goodbye.
  Status finish() override { return finish(/*silently=*/false); }
  // `silently`: it says no goodbye, as the job has not ended by itself.
  Status finish(bool silently);
  void leave_silently(Where /*where*/ = Where::here) override {
    if (agent_ != nullptr) agent_->leave_silently();
  }

  VersionNumber version() const override { return version_; }
  Status test(VersionNumber version, Level& level) override;
  Status wait(VersionNumber version, Level level, double timeout_s) override;
  Status read_region(VersionNumber version, const std::string& name, void* data,
                     std::size_t bytes) override;

  const Config& config() const override { return config_; }

 private:
  friend class CutLink;
  friend class ObjectSession;
  friend class StreamSession;
  class Requests;  // due()'s view of the agent and of signals

  Session(const Group& group, JobStart job, Copier copier);
  Status introduce();
  Status connect_at_start();
  Status connect();
  // Before a collective call: connected on all ranks, and `mine` good on all ranks.
  Status ready(const Status& mine);
  Status drop_streams();
  Status connect_for_streams(const Status& outcome);
  Status take_version();
  Status take_version_of(ObjectSource& source);
  Status next_version(VersionNumber& version);
  // Of a checkpoint. `stood_still_ns`: as Due::checkpoint_captured() has it.
  Status count(const Status& outcome, std::optional<std::uint64_t> stood_still_ns = std::nullopt);
  using BringBack = std::function<Result<VersionNumber>(bool& touched)>;
  Result<VersionNumber> restart_by(const BringBack& bring_back);
  Status adopt(const Status& outcome);
  void report_lost(const Error& error, const char* what_now);
  // Ignores an answer with a level below `least` and no reason.
  Result<wire::LevelIs> ask_level(const wire::Message& question, VersionNumber version, Level least,
                                  std::uint64_t deadline);
  Status waited_in_vain(VersionNumber version, Level level, double timeout_s);
  Result<VersionNumber> bring_back_regions(bool& touched);
  Result<VersionNumber> bring_back(const RestartPlan& plan, bool& touched);
  void tell_refusal(const Error& why);
  void tell_finished(VersionNumber version);
  void pin_pool();
  void tell_other_settings();

  Group group_;
  const Copier copier_;
  Config config_;
  Origin origin_;
  AgentAddress address_;
  wire::Hello hello_;
  std::optional<RunMark> mark_;  // while the session lasts
  std::unique_ptr<Connection> agent_;
  Regions regions_;
  RoutedFiles files_;
  Streams streams_;
  SavedStreams saved_streams_;
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<Due> due_;
  VersionNumber version_ = 0;  // newest captured or restarted from
  // On several nodes: the version that was brought back, and the run that saved it.
  std::pair<VersionNumber, RunId> restarted_;
  bool may_be_base_ = false;       // of that version: the next one may keep chunks of it
  VersionNumber newest_used_ = 0;  // the same on all ranks; the next is one more
  // The version that a cut has ordered, for the next checkpoint; and at which of the agents that
  // this session has had (docs/protocol/cut.md). 0: the next checkpoint is one of all ranks.
  VersionNumber ordered_version_ = 0;
  std::uint64_t ordered_by_ = 0;
  std::uint64_t connected_ = 0;   // how often
  std::uint64_t pool_inode_ = 0;  // tells the agents apart: each has a pool of its own
  bool loss_reported_ = false;
  bool settings_told_ = false;
  bool agent_silent_ = false;  // at the last message to it
  bool agent_died_ = false;    // while connect() was under way, as far as this rank knows
  bool has_device_regions_ = false;
  bool pool_pinned_ = false;
};

}  // namespace backstay::client
