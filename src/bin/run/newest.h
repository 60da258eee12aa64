// The newest version of a job that a restart could take, for messages and for telling whether restarts get anywhere.
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

// Looks at this node's disk, the durable directory, the agent's memory, and, where the program runs on `hosts`, the disks
// of some of these: a version is on each. Blocks on all of that.
Newest newest_version(const Config& config, const std::string& job, const RunHosts* hosts);
std::string text_of(const Newest& newest);

// Why the ranks could not use what was saved, where that was at most `seconds` ago; "": they said nothing of the kind. Asks
// this node's agent and, where the program runs on `hosts`, those of some of these: each node's ranks say it.
std::string refusal_within(const Config& config, const std::string& job, double seconds,
                           const RunHosts* hosts);

}  // namespace backstay::bin
