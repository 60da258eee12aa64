// A whole job under one seed: hosts with disks in memory, one agent each with all its rooms, ranks,
// a lossy network, shared storage, and one clock that only the simulation moves. What happens next
// is chosen by the seed; the promises of the fault model are checked after every step (promises.h)
// and at every restart.
//
// Beside the restarts, what the disks hold is checked whenever a level is announced and whenever a
// store may have removed files (disks.cc): so a promise that is broken shows at that step, and not
// only where the next losses need it.
//
// Fault model: an agent is killed, at any step of a start, a restart or a checkpoint; the program
// is killed; hosts lose power at once, and come back with what their disks had synced, or not at
// all; a disk fills up while the program runs, and may have room again; connections break and
// delay. Blocks that turn bad are not played here (tests/crash does).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simulated_run/agent.h"
#include "simulated_run/promises.h"
#include "simulated_run/rank.h"

namespace backstay::simulated {

struct Settings {
  std::uint32_t hosts = 3;
  std::uint32_t ranks = 4;
  std::uint32_t replicas = 1;
  std::string parity;  // instead, "k,m"; then `tolerates` is m
  std::uint32_t tolerates = 1;
  bool durable = false;
  std::uint32_t keep = 2;
  net::LossyPlan network;

  // One of those that users have, by the seed.
  static Settings random(test::Random& random);
  std::string describe() const;
};

class SimulatedRun {
 public:
  SimulatedRun(std::uint64_t seed, Settings settings);
  ~SimulatedRun();

  // So many starts of the program, each ended by a fault; after the last one the job must come
  // back.
  void live(unsigned starts);
  // What did not hold; "": all did.
  const std::string& broken() const { return broken_; }
  std::string describe() const;

  struct Counts {
    std::uint64_t steps = 0, versions = 0, restarts = 0, from_older = 0;
    std::uint64_t needing = 0;       // parts of versions that need older ones
    std::uint64_t on_base = 0;       // versions that keep chunks of the one before
    std::uint64_t on_restarted = 0;  // of these: of one that another run of several nodes saved
    std::uint64_t on_restarted_parity = 0;  // of these: of runs that make parity
    std::map<Level, std::uint64_t> announced;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Host {
    std::unique_ptr<io::MemoryFileSystem> disk = std::make_unique<io::MemoryFileSystem>();
    std::unique_ptr<SimulatedAgent> agent;
    unsigned weight = 1;        // how often it does something
    bool full = false;          // its disk
    VersionNumber vouched = 0;  // its agent has, and has its part; 0: for none
  };
  using Done = std::function<bool()>;

  // --- time ---
  void step();
  void hurry();
  // False: the program cannot go on, or something is broken.
  bool run_until(const char* what, const Done& done);
  void rest(std::uint64_t steps);
  void look(HostId host);

  // --- what the disks hold (disks.cc) ---
  FilesHere files(HostId host, VersionNumber version) const;
  const std::vector<agent::FileOf>& needs_of(HostId host, const std::string& manifest) const;
  bool has_needed(HostId host, const std::string& manifest) const;
  std::set<HostId> all_hosts() const;
  void check_needs(HostId id);
  void check_restarted(HostId id);
  void check_shared(VersionNumber version);
  void check_disks(HostId changed);
  void check_vouched(HostId id, bool changed);
  void check_room();

  // --- the program, as src/client does it ---
  bool start();
  protect::Groups parity_groups() const;
  bool connect();
  bool exchange_addresses();
  bool restart();
  struct Candidate {
    VersionOfRun version;
    std::uint32_t ranks = 0;
    std::optional<Error> damage;
  };
  // Errors: none (there is no version), agent_lost, whatever an agent says.
  Result<Candidate> newest_below(VersionOfRun below);
  Status take(VersionOfRun version);
  bool restarted_from(VersionOfRun version);
  bool restart_alone();
  bool checkpoint();
  VersionOfRun offered(VersionOfRun version) const;
  VersionOfRun find_base();
  Promises::Kept choose_kept(VersionOfRun base);
  void check_base(VersionOfRun base);
  void stop_program();

  // --- faults ---
  bool fault();
  void fill_or_free(HostId host);
  void free_all();
  void meet_doom();
  void kill_agent(HostId host, End how);
  void power_off(HostId host, bool disk_is_lost);
  std::vector<HostId> some_hosts(std::uint32_t most);
  void move();

  SimulatedRank& rank(std::size_t number) { return *ranks_[number]; }
  HostId host_of(std::size_t rank) const { return nodes_[node_of_[rank]]; }
  void say(std::string what);
  void fail(const std::string& what);

  const std::uint64_t seed_;
  const Settings settings_;
  test::Random random_;
  ManualClock clock_;
  net::LoopbackNetwork network_;
  io::MemoryFileSystem shared_;
  Locks locks_;
  std::vector<std::shared_ptr<Line>> silent_;
  Surroundings around_;
  std::map<HostId, Host> hosts_;
  HostId next_host_ = 1;
  Promises promises_;
  mutable std::map<std::uint64_t, std::vector<agent::FileOf>> needs_;  // by the manifest's digest

  // --- the present start of the program ---
  RunId run_ = 0;
  std::vector<HostId> nodes_;
  std::vector<NodeId> node_of_;  // of each rank
  std::vector<std::unique_ptr<SimulatedRank>> ranks_;
  agent::ConnectionId next_connection_ = 100;
  std::map<agent::ConnectionId, std::size_t> rank_at_;
  std::map<std::size_t, agent::ConnectionId> connection_of_;
  VersionNumber next_version_ = 1;
  VersionOfRun restarted_from_;  // by this start of the program; number 0: not yet
  VersionOfRun latest_;          // that this start of the program has: taken, or restarted from
  // The last one, by the agents that live, or the one of the restart, where they say that it may be
  // a base; number 0: there is none.
  VersionOfRun captured_;
  unsigned chain_ = 0;       // versions since the last one without a base
  bool agent_died_ = false;  // since the ranks connected
  // What happens to a host in so many steps, whatever the program does then.
  struct Doom {
    HostId host = 0;
    std::uint64_t steps = 0;
    bool loses_power = false;  // else its agent is killed
  };
  std::optional<Doom> doom_;
  std::uint32_t waited_ = 0;

  std::vector<std::string> history_;
  std::string broken_;
  Counts counts_;
};

}  // namespace backstay::simulated
