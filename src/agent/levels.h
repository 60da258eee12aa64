// Who asked for a version's level, and what may be answered (docs/glossary.md: levels).
//
// The one place that turns what is known into a level: nobody is told a level that a crash at
// that instant would not honour.
#pragma once

#include <vector>

#include "agent/job_state.h"

namespace backstay::agent {

class Levels {
 public:
  explicit Levels(JobState& state) : state_(state) {}

  wire::LevelIs level_of(VersionNumber version) const;
  void query(ConnectionId connection, VersionNumber version);
  void await(ConnectionId connection, const wire::Await& await);
  // Something about `version` has changed: answers those whose waiting is over.
  void changed(VersionNumber version);
  void forget(ConnectionId connection);

 private:
  struct Waiter {
    ConnectionId connection;
    wire::Await await;
  };
  JobState& state_;
  std::vector<Waiter> waiters_;
};

}  // namespace backstay::agent
