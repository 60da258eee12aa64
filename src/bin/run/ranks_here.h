// The ranks of a job that live on this host, as its agent knows them: `backstay agent ranks`,
// through which `backstay run` on another host (take_over.h) asks for them and ends them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/config.h"
#include "base/result.h"

namespace backstay::bin {

// The longest time that the two functions below wait.
inline constexpr double ranks_here_s = 12;

// {"host": "n1", "run": "hex", "nodes": 3, "processes": [{"rank": 1, "pid": 7}], "members": [..]};
// `members` as in the agent's status. `processes` is empty if there are no ranks or no agent
// answers. Ranks that have just ended are not listed: their agent gets a moment to notice it.
nlohmann::ordered_json ranks_here(const Config& config, const std::string& job);

// Ends the ranks of the job if they are of this run, and waits for their end. The answer lists
// {"rank": 1, "pid": 7} in `ended`, and in `left` for those that live on. Errors: busy (another run
// is here by now), agent_lost, protocol.
Result<nlohmann::ordered_json> end_ranks_here(const Config& config, const std::string& job,
                                              const std::string& run);

}  // namespace backstay::bin
