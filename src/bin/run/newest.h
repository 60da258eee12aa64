// The newest version of a job that a restart could take, for messages and to see whether restarts
// make progress.
#pragma once

#include <cstdint>
#include <string>

#include "base/config.h"
#include "base/ids.h"
#include "bin/run/run_hosts.h"

namespace backstay::bin {

struct Newest {
  VersionNumber version = 0;  // 0: none was found
  std::uint64_t captured_ns = 0;
  std::string place;
};

// Looks at this node's disk, the durable directory, the agent's memory, and, if the program runs on
// `hosts`, the disks of some of these: a version is on each. Blocks on all of these.
Newest newest_version(const Config& config, const std::string& job, const RunHosts* hosts);
// `lost_ns`: when the program failed; 0: not known.
std::string text_of(const Newest& newest, std::uint64_t lost_ns);

// Why the ranks refused to go on since `began_ns` (monotonic); "": they did not.
// Asks this node's agent and, if the program runs on `hosts`, the agents of some of these: each
// node's ranks report it.
std::string refusal_since(const Config& config, const std::string& job, std::uint64_t began_ns,
                          const RunHosts* hosts);

}  // namespace backstay::bin
