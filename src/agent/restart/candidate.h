// What this node can offer for a restart over several nodes (docs/protocol/agent.md, "On several
// nodes").
#pragma once

#include "agent/version/job_state.h"
#include "wire/message.h"

namespace backstay::agent {

// The newest version below what is asked that is in the pool, or has a record on this node's disk
// or in the durable directory, of any run. Whether all of it can be had is not known here. A
// newer one that is known to be damaged in the durable directory is answered with what is wrong
// with it, so that it is not passed over in silence.
wire::Candidate newest_candidate(const JobState& state, const wire::Candidates& asked);

}  // namespace backstay::agent
