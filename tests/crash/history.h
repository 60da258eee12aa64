// The rule of the fault tests, and programs that it is held against.
//
// The rule: a level that was reported is never lost; a restart gives the exact bytes of one
// complete version, the same on all ranks, or a clear error; never wrong bytes.
//
// A History is one job over the lives of several agents and programs on one Machine. It remembers
// what every attempt to take a version saved and what was reported of it, and checks each answer.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "machine.h"
#include "seed.h"

namespace backstay::crash {

using Attempt = std::uint64_t;  // taking a version; a number may be tried again after a crash

class History {
 public:
  History(Machine& machine, std::uint64_t seed, std::uint32_t ranks, std::uint64_t bytes_max);

  // A run of the program begins: all its ranks join. False where the disk refused it, with an
  // error.
  bool join();
  void leave();
  // All ranks save something new. Returns the code that they got.
  Code take_version();
  // The agent works until nothing is left to do.
  void settle();
  // All ranks restart; the answer is held against the rule. `healthy`: the disk has no fault now,
  // so everything that was reported must come back.
  void restart(bool healthy);
  // A rank dies somewhere while a version is taken, then the others end and a new run joins.
  void lose_a_rank();
  // The agent that a life had been captured by is gone.
  void agent_is_new();
  // After the crash of agent or machine: a new agent, every answer checked, one more version.
  void recover();
  // Some of all this, at random, until `steps` are done or the machine has stopped.
  void live(unsigned steps);

  VersionNumber newest_reported() const;  // captured by the agent that lives, or local
  VersionNumber newest_local() const;
  std::string describe() const;

 private:
  struct Version {
    std::set<Attempt> possible;       // whose bytes it may hold
    std::optional<Attempt> captured;  // reported to this life's ranks
    bool local = false;               // reported
  };
  std::vector<std::byte> content(Attempt attempt, Rank rank) const;
  void watch();  // notes what would be reported now
  void some_steps();
  void step();
  void check_restored(const JobHarness::Back& back, VersionNumber wanted);
  std::optional<Attempt> attempt_of(const JobHarness::Back& back, VersionNumber version) const;
  std::set<VersionNumber> must_come_back() const;
  JobHarness& agent() { return machine_.agent(); }

  Machine& machine_;
  Random random_;
  const std::uint64_t seed_;
  const std::uint32_t ranks_;
  const std::uint64_t bytes_max_;
  RunId run_ = 0;
  Attempt next_attempt_ = 1;
  VersionNumber newest_ = 0;
  std::map<VersionNumber, Version> versions_;
};

}  // namespace backstay::crash
