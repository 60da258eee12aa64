// What the agents of a simulated run have said about versions, and what the fault model makes of
// it: which version must come back after losses (docs/fault-model.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "protect/groups.h"
#include "wire/message.h"

namespace backstay::simulated {

using HostId = std::uint32_t;
using VersionOfRun = std::pair<VersionNumber, RunId>;

inline constexpr std::uint32_t buffer_bytes = 16 * 1024;

// Whose files of one version lie on a host's disk, each with its manifest.
struct FilesHere {
  std::set<NodeId> segments;
  std::set<NodeId> parity;
  bool recorded = false;  // at some level: so every part was on its node's disk
};
// Of a host that has a disk.
using FilesOf = std::function<FilesHere(HostId host, VersionNumber version)>;

class Promises {
 public:
  // A run begins on these hosts, in the order of its nodes. `tolerates`: how many losses a
  // protected version outlives, of all nodes, or of each of the parity groups where there are
  // `groups`.
  void begin_run(RunId run, std::vector<HostId> hosts, std::uint32_t tolerates,
                 protect::Groups groups);
  // Whole chunks of an older version's objects, by rank and index there. Version 0: none.
  struct Kept {
    VersionOfRun base;
    std::vector<std::vector<std::size_t>> chunks;
  };
  // Each rank keeps these chunks and hands over so many bytes behind them. Where it keeps none,
  // some of these are as an older version has them (number 0: none does), so that chunks repeat.
  void taking(VersionOfRun version, std::vector<std::size_t> bytes, VersionOfRun like, Kept kept);
  // An agent would answer a rank with this level. True: no agent has said so before.
  bool announced(VersionOfRun version, Level level);
  // The host's disk is gone.
  void lost(HostId host) { lost_.insert(host); }

  // The newest version that a restart on these hosts must bring back, itself or a newer one; number
  // 0: none.
  struct Owed {
    VersionOfRun version;
    Level level = Level::none;
  };
  Owed owed(const std::set<HostId>& hosts) const;
  // The first announced version that would not survive the losses that its level still promises, by
  // what lies on the disks of these hosts now; "": each would. Looks at levels below durable.
  std::string endangered(const std::set<HostId>& hosts, const FilesOf& files) const;
  // Whether each part of the version is on some disk, or can be rebuilt.
  bool is_whole(VersionOfRun version, const std::set<HostId>& hosts, const FilesOf& files) const;
  // A newer version was decided and is whole: local ones before it may go, whether any agent has
  // said so or not.
  bool is_overtaken(VersionOfRun version, const std::set<HostId>& hosts,
                    const FilesOf& files) const;
  // The newest that was announced as protected, or as durable; 0: none was.
  VersionNumber newest_protected() const;
  // The bytes of that rank in a version that some run has taken; empty: none has.
  std::vector<std::byte> expected(VersionOfRun version, Rank rank) const;
  std::vector<RunId> runs() const;
  std::string describe() const;

 private:
  struct Run {
    std::vector<HostId> hosts;
    std::uint32_t tolerates = 0;
    bool parity = false;
    protect::Groups groups;  // without parity: one, of all nodes
  };
  struct Version {
    std::vector<std::size_t> bytes;
    VersionOfRun like;
    Kept kept;
    Level level = Level::none;  // the highest that was announced
    bool superseded = false;    // a newer one was announced at that level or a higher one
  };
  // A parity group of a version's run, or all of its nodes, as the disks are.
  struct OnDisks {
    std::uint32_t lost = 0;        // nodes of it
    std::uint32_t members = 0;     // nodes whose segment and whose parity are both on a disk
    std::uint32_t copies_min = 0;  // of the segment that the fewest disks have
    NodeId scarce = 0;             // whose segment that is
  };
  OnDisks kept(VersionOfRun version, const std::vector<NodeId>& group,
               const std::set<HostId>& hosts, const FilesOf& files) const;
  std::vector<std::byte> behind(const Kept& kept, Rank rank,
                                const std::vector<std::byte>& own) const;
  // Whether these files of a group bear so many more losses.
  static bool bears(const Run& run, std::size_t group_size, const OnDisks& kept,
                    std::uint32_t losses);
  bool is_here(HostId host, const std::set<HostId>& hosts) const {
    return hosts.count(host) != 0 && lost_.count(host) == 0;
  }
  std::uint32_t missing(const Run& run, const std::vector<NodeId>& group,
                        const std::set<HostId>& hosts) const;
  bool survives(VersionOfRun version, Level level, const std::set<HostId>& hosts) const;

  std::map<RunId, Run> runs_;
  std::map<VersionOfRun, Version> versions_;
  std::set<HostId> lost_;
};

}  // namespace backstay::simulated
