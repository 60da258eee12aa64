// The places of a version's copies and the losses that it would survive: `backstay show` prints
// them from an agent's answer to `where` (docs/protocol/agent.md). Pure.
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
  std::vector<std::string> warnings;         // of nodes that answered, a sentence each
  std::vector<NodeId> troubled;  // nodes with a failing disk: it may not give back what it has
  std::vector<NodeId> silent;    // have not answered, or are lost: their files are not counted
  std::uint64_t not_asked = 0;   // nodes; their files are not counted either
  std::uint64_t living = 0;      // nodes that answered
  protect::Survival survival;    // of the loss of nodes that answered
  protect::Survival sure;        // the same without the files of the troubled, if there are any
};

// Errors: protocol (not an answer to `where`).
Result<Copies> copies_of(const nlohmann::ordered_json& answer);

// For people, a line each.
std::vector<std::string> survival_lines(const Copies& copies);
nlohmann::ordered_json survival_json(const Copies& copies);

}  // namespace backstay::bin
