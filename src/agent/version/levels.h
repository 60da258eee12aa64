// Who asked for a version's level, and when the answer is due (docs/glossary.md: levels). What the
// answer is, why_not.h says.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "agent/version/why_not.h"

namespace backstay::agent {

class Levels {
 public:
  explicit Levels(JobState& state) : state_(state) {}

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
  // Tools whose version has come since the last call: the owner shows it to them.
  struct Come {
    ConnectionId tool = 0;
    VersionNumber version = 0;
  };
  std::vector<Come> take_come() { return std::exchange(come_, {}); }
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
  enum class Asker { query, await, tool };
  bool answer(const Tool& tool, VersionNumber version);
  wire::LevelIs towards(VersionNumber version, Level wanted, Asker asker) const;
  bool is_told(const WhyNot& why, Asker asker) const;
  std::set<VersionNumber> known() const;

  JobState& state_;
  std::vector<Waiter> waiters_;
  std::vector<Tool> tools_;
  std::vector<Come> come_;
};

}  // namespace backstay::agent
