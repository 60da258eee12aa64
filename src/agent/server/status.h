// The agent's answer to `status`: JSON as in docs/protocol/agent.md.
#pragma once

#include <string>
#include <vector>

#include "agent/disk/links.h"
#include "agent/group/status_poll.h"
#include "agent/job/job.h"
#include "agent/memory/pool.h"

namespace backstay::agent {

struct StatusInput {
  std::string socket_path;
  double uptime_s = 0;
  const Pool* pool = nullptr;
  DiskFacts disk;
  DiskTraffic traffic;
  struct OneJob {
    const Job* job;
    const Gathered* members;  // null: no other node was asked
  };
  std::vector<OneJob> jobs;
  std::string metrics_at;     // "127.0.0.1:9464"; "": nowhere
  std::string metrics_error;  // why nowhere, although they are wanted
};

std::string to_json(const StatusInput& input);

// The answer to `where`.
std::string to_json(const format::CommitRecord& version, Level level, const Gathered& members);

}  // namespace backstay::agent
