// Where the copies of a version are, and what would survive which losses: what `backstay show` says of an agent's answer to
// `where` (docs/protocol/agent.md). Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "protect/survival.h"

namespace backstay::bin {

struct Copies {
  bool durable = false;                      // in the durable directory as well
  std::vector<std::vector<NodeId>> holders;  // of each node's file
  std::vector<protect::ParityThere> parity;  // of each group, in any order
  std::vector<std::string> troubles;         // of nodes that answered, a sentence each
  std::vector<NodeId> troubled;  // whose own disk it is: one that takes nothing may give nothing
  std::vector<NodeId> silent;    // have not answered, or are lost: what they have is not counted
  std::uint64_t not_asked = 0;   // nodes; nor is what these have
  std::uint64_t living = 0;      // nodes that answered
  protect::Survival survival;    // of the loss of nodes that answered
  protect::Survival sure;        // the same without what the troubled keep, where there are such
};

// Errors: protocol (not an answer to `where`).
Result<Copies> copies_of(const nlohmann::ordered_json& answer);

// For people, a line each.
std::vector<std::string> survival_lines(const Copies& copies);
nlohmann::ordered_json survival_json(const Copies& copies);

}  // namespace backstay::bin
