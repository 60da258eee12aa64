// What each node of a run publishes as fact `lacks`: why it keeps versions from a level for now
// (docs/protocol/tree.md, "What a node cannot do"). level_blockers.h holds those of all nodes.
#pragma once

#include <string>
#include <vector>

#include "agent/version/level_blockers.h"
#include "base/result.h"

namespace backstay::agent {

inline constexpr const char* blockers_fact = "lacks";

// As many as are published: those of the newest versions, lower levels first, reasons cut short.
std::vector<Blocker> newest_of(std::vector<Blocker> blockers);
// The fact's value, within the bounds of a fact.
std::string encode(NodeBlockers blockers);
// Errors: invalid (not such a value).
Result<NodeBlockers> decode_blockers(const std::string& value);

// In a line, for people.
std::string line_of(const Blocker& blocker);

}  // namespace backstay::agent
