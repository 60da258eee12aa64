// The failure domain of a node: a label that all nodes share which may fail together (rack, switch,
// power). docs/protocol/placement.md says what it is for.
#pragma once

#include <cstddef>
#include <string>

#include "base/config.h"
#include "base/result.h"

namespace backstay {

inline constexpr std::size_t domain_bytes_max = 63;

// protect.domain if it is set, else what protect.domain_file says of `host`, by its full name or by
// what comes before the first dot; with neither key set, the switch or block that Slurm's topology
// gives the node of this process (SLURM_TOPOLOGY_ADDR), if it is `host`. "": the node fails alone.
// Errors: config (naming file and line), and those of opening the file.
Result<std::string> domain_of(const Config& config, const std::string& host);

}  // namespace backstay
