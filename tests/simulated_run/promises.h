// What the agents of a simulated run have said about versions, and what the fault model makes of it: which version must
// come back after losses (docs/fault-model.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "wire/message.h"

namespace backstay::simulated {

using HostId = std::uint32_t;
using VersionOfRun = std::pair<VersionNumber, RunId>;

// What rank `rank` saved in this version. Differs for each.
std::vector<std::byte> content(VersionOfRun version, Rank rank, std::size_t bytes);

class Promises {
 public:
  // A run begins on these hosts, in the order of its nodes. `tolerates`: how many of them a protected version outlives;
  // `group_of`: the parity group of each node, where each group tolerates that many losses; empty: all are one.
  void begin_run(RunId run, std::vector<HostId> hosts, std::uint32_t tolerates,
                 std::vector<std::uint32_t> group_of);
  // All ranks hand over so many bytes each.
  void taking(VersionOfRun version, std::vector<std::size_t> bytes);
  // An agent would answer a rank with this level.
  void announced(VersionOfRun version, Level level);
  // The host's disk is gone.
  void lost(HostId host) { lost_.insert(host); }

  // The newest version that a restart on these hosts must bring back, itself or a newer one; number 0: none.
  struct Owed {
    VersionOfRun version;
    Level level = Level::none;
  };
  Owed owed(const std::set<HostId>& hosts) const;
  // The bytes of that rank in a version that some run has taken; empty: none has.
  std::vector<std::byte> expected(VersionOfRun version, Rank rank) const;
  std::vector<RunId> runs() const;
  std::string describe() const;

 private:
  struct Run {
    std::vector<HostId> hosts;
    std::uint32_t tolerates = 0;
    std::vector<std::uint32_t> group_of;
  };
  struct Version {
    std::vector<std::size_t> bytes;
    Level level = Level::none;  // the highest that was announced
    bool superseded = false;    // a newer one was announced at that level or a higher one
  };
  bool survives(VersionOfRun version, Level level, const std::set<HostId>& hosts) const;

  std::map<RunId, Run> runs_;
  std::map<VersionOfRun, Version> versions_;
  std::set<HostId> lost_;
};

}  // namespace backstay::simulated
