// One job on this node: takes the messages of its ranks and the events of its store and gives them
// to Capture, Restore and Levels. A state machine without I/O of its own.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/capture.h"
#include "agent/control_page.h"
#include "agent/durability.h"
#include "agent/job_state.h"
#include "agent/levels.h"
#include "agent/restore.h"

namespace backstay::agent {

class Job {
 public:
  Job(std::string name, std::string dir, Pool& pool, Outbox& outbox, StoreLink& store,
      const Clock& clock, std::unique_ptr<ControlPage> page);

  const std::string& name() const { return state_.name; }
  const std::string& dir() const { return state_.dir; }

  // A rank joins. Answered by Welcome once the tier was scanned. Errors: busy (another run of this
  // job is alive), invalid, state; the caller ends the connection with them.
  Status hello(ConnectionId connection, const wire::Hello& hello);

  // A message of a joined rank. An error ends its connection.
  Status receive(ConnectionId connection, const wire::Message& message);

  // The connection of a rank or a waiting tool is gone. `goodbye`: the rank had said so.
  void disconnected(ConnectionId connection, bool goodbye);

  void on(const Event& event);
  void on_drain(const Event& event);

  // Buffers may have become free.
  void pump();

  // `backstay checkpoint`, or a signal at one of the ranks.
  void request(bool stop) { page_->request_checkpoint(stop); }

  // A tool waits for a version that the program takes after this.
  void await_newer(ConnectionId tool, const wire::AwaitNewer& await) {
    levels_.await_newer(tool, await);
    durability_.consider();
  }

  // A tool removes the version: no restart takes it any more. Errors: busy (it is still needed here).
  Status forget(VersionNumber version);

  // Gives back one buffer whose bytes are safe on the tier, for the good of another job.
  bool release_one() { return state_.release_one_written(); }

  bool has_ranks() const { return runs() || !waiting_.empty(); }
  // Ranks have joined: a request to checkpoint reaches them. Before that it would be forgotten, as
  // every run begins without requests.
  bool runs() const { return !state_.links.empty(); }
  // No rank, and no version that is only here: closing the job would lose nothing but time.
  bool unused() const;
  // What would be lost is a fast restart.
  bool keeps_versions() const { return !state_.memory.empty(); }
  // Gives all buffers back. Precondition: unused(), and the store has nothing left to do.
  void close();
  // Captured versions are on their way to the tier, or a restore is under way.
  bool busy() const;
  // Not 0: this version is on its way to the durable directory.
  VersionNumber copying() const { return durability_.copying(); }
  bool waits_for_buffers() const;
  // The job is another agent's, or its tier could not be scanned; everybody who joined was told.
  bool unusable() const { return scan_error_.has_value(); }

  const JobState& state() const { return state_; }
  wire::LevelIs level_of(VersionNumber version) const { return levels_.level_of(version); }
  bool stop_requested() const { return page_->stop_requested(); }

 private:
  Status admit(ConnectionId connection, const wire::Hello& hello);
  void admit_waiting(const Status& opened);
  void new_run(const wire::Hello& hello);
  void scanned(const Scanned& event);
  Status restart(const RankLink& link, const wire::Restart& restart);
  Status fetch(const RankLink& link, const wire::Fetch& fetch);
  void reap_restores();

  JobState state_;
  std::unique_ptr<ControlPage> page_;
  Levels levels_;
  Capture capture_;
  Durability durability_;
  bool scanned_ = false;
  RunId opened_for_ = 0;             // the run whose durable directory was looked at
  std::optional<Error> scan_error_;  // also for those who come after it
  std::list<std::pair<ConnectionId, wire::Hello>> waiting_;  // for the scan
  std::map<Rank, wire::Restart> restarting_;                 // ranks that asked, until all have
  std::list<std::unique_ptr<Restore>> restores_;             // the front one runs
};

}  // namespace backstay::agent
