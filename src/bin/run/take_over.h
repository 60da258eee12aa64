// Ranks of a job that live on although `backstay run` is to start it now. If the launcher's host
// has lost its power, ranks on other hosts can wait for it for a quarter of an hour, and their
// agents serve no other run of the job.
//
// 1. look() asks the agents of this host and of the hosts of the job, and then of those that other
//    ranks of these runs are on.
// 2. refusal() lists them, or end() ends them: the ranks that look() has found, of the runs that it
//    has found. Whether their launcher lives is not known here: only the user knows.
// One thread; blocks.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/ids.h"
#include "bin/run/run_hosts.h"

namespace backstay::bin {

class RanksAlive {
 public:
  // `hosts` null: the job has no known hosts; only this host is asked.
  static RanksAlive look(const Config& config, const std::string& job, const RunHosts* hosts);

  bool none() const { return found_.empty(); }
  // Some are of runs that this `backstay run` has not started.
  bool of_others_than(Launch launch) const;
  // Code busy.
  Error refusal() const;
  // [{"host": "n1", "run": "hex", "rank": 1, "pid": 7}]
  nlohmann::ordered_json processes() const;
  // Reports the ranks that it has ended, and those that it cannot reach. Errors: busy (some live
  // on).
  Status end(const RunHosts* hosts, const Say& say) const;

 private:
  struct OnHost {
    std::string address;            // for the remote shell; "": this host
    nlohmann::ordered_json answer;  // as ranks_here() has it
  };

  RanksAlive() = default;
  void take(const std::string& address, const nlohmann::ordered_json& answer);
  void ask(const RunHosts& hosts, const std::vector<std::string>& addresses);
  std::map<std::string, std::uint64_t> elsewhere() const;
  std::string where() const;
  std::string list() const;
  std::vector<Result<nlohmann::ordered_json>> end_each(const RunHosts* hosts) const;

  Config config_;
  std::string job_;
  std::vector<OnHost> found_;    // those with ranks
  std::set<std::string> asked_;  // by their own names
};

}  // namespace backstay::bin
