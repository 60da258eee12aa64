// What is shown of one job: to tools (docs/protocol/agent.md) and to the other agents of its run
// (docs/protocol/peers.md, "Looking").
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "agent/version/job_state.h"
#include "wire/peer_message.h"

namespace backstay::agent {

class Job;

// One entry of the status's `versions`.
nlohmann::json version_json(const JobState& state, VersionNumber number);

// The document in one line. A path or a message in it may hold bytes that are not UTF-8: they are
// replaced.
std::string text_of(const nlohmann::json& document);

// What other agents of the run get to see of this one. `files_of`: whose files are listed; number
// 0: of none.
wire::peer::Seen seen_here(const Job& job, VersionOfRun files_of);

}  // namespace backstay::agent
