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
  std::uint64_t written_bytes = 0;
  std::uint64_t read_bytes = 0;
  std::vector<const Job*> jobs;
};

std::string to_json(const StatusInput& input);

// One entry of its `versions`.
std::string to_json(const Job& job, VersionNumber version);

}  // namespace backstay::agent
