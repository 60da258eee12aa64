// Who asked for a version's level, and what may be answered (docs/glossary.md: levels).
//
// The one place that turns what is known into a level: no level is reported that a crash at
// that instant would not honour.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "agent/version/job_state.h"

namespace backstay::agent {

class Levels {
 public:
  // `describe`: a version as `status` shows it, for tools.
  Levels(JobState& state, std::function<std::string(VersionNumber)> describe)
      : state_(state), describe_(std::move(describe)) {}

  wire::LevelIs level_of(VersionNumber version) const;
  // A rank or a tool waits for `version` to be durable.
  bool wanted_durable(VersionNumber version) const;
  void query(ConnectionId connection, VersionNumber version);
  void await(ConnectionId connection, const wire::Await& await);
  void await_newer(ConnectionId tool, const wire::AwaitNewer& await);
  // Something about `version` has changed: answers those whose waiting is over.
  void changed(VersionNumber version);
  // Something that concerns all of them, or time has passed where nodes are or were lost: call it
  // at each tick.
  void changed();
  void forget(ConnectionId connection);
  // The job is closed: nothing will change any more.
  void close();

 private:
  struct Waiter {
    ConnectionId connection;
    wire::Await await;
  };
  struct Tool {
    ConnectionId connection;
    wire::AwaitNewer await;
  };
  bool answer(const Tool& tool, VersionNumber version) const;
  wire::LevelIs towards(VersionNumber version, Level wanted, bool waits) const;
  bool may_pass() const;
  bool is_elsewhere(VersionNumber version) const;
  bool is_of_earlier_run(VersionNumber version) const;
  std::set<VersionNumber> known() const;
  bool is_configured(Level level) const;
  Level highest() const;

  JobState& state_;
  std::function<std::string(VersionNumber)> describe_;
  std::vector<Waiter> waiters_;
  std::vector<Tool> tools_;
};

}  // namespace backstay::agent
