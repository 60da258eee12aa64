// The agent's answer to `status`: JSON as in docs/protocol/agent.md.
#pragma once

#include <string>
#include <vector>

#include "agent/job.h"
#include "agent/pool.h"
#include "agent/server.h"

namespace backstay::agent {

struct StatusInput {
  std::string socket_path;
  double uptime_s = 0;
  const Pool* pool = nullptr;
  DiskFacts disk;
  DiskTraffic traffic;
  struct OneJob {
    const Job* job;
    const Gathered* members;  // null: nobody was asked
  };
  std::vector<OneJob> jobs;
  std::string metrics_at;     // "127.0.0.1:9464"; "": nowhere
  std::string metrics_error;  // why nowhere, although they are wanted
};

// What other agents of the run get to see of this one (docs/protocol/peers.md, "Looking").
wire::peer::Seen seen_here(const Job& job, VersionOfRun files_of);

std::string to_json(const StatusInput& input);

// The answer to `where`.
std::string to_json(const format::CommitRecord& version, Level level, const Gathered& members);

// One entry of its `versions`.
std::string to_json(const Job& job, VersionNumber version);

}  // namespace backstay::agent
