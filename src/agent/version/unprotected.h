// A file that does not get its copies or its parity, in the log and the event log
// (docs/format/events.md): a failure that a person may have to end, or only a version that newer
// ones have overtaken.
#pragma once

#include "agent/version/job_state.h"

namespace backstay::agent {

// Newer versions have taken its place on a node before it was protected: no trouble where versions
// come faster than copies of them can be made. Those that wait for that version still learn it
// (levels.h).
bool is_overtaken(const JobState& state, VersionNumber version, Code code);

// `of`: whose file it is.
void record_unprotected(const JobState& state, VersionNumber version, NodeId of, const Error& why,
                        bool overtaken);

}  // namespace backstay::agent
