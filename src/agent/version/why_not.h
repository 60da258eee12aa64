// The one answer to "why is version v not at level L?" (docs/protocol/versions.md has a row for
// each cause): for ranks and tools that wait or ask, `status`, `top`, warnings, and for the other
// nodes of the run.
//
// Pure functions over the table of versions and the pool. No level is reported that a crash at
// that instant would not honour.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/version/job_state.h"

namespace backstay::agent {

struct WhyNot {
  enum class Cause {
    not_there,       // nothing of it is known here
    damaged,         // on this node's disk
    not_written,     // to this node's disk; it is in the pool
    not_configured,  // this job does not reach that level
    blocked,         // a node keeps it from the level: it could not write, record or copy it
    no_connection,   // with a node of the run
    node_lost,       // of the run
    not_copied,      // to shared storage
    left_out,        // for a newer version, which could not be copied there
    earlier_run,     // what protected it may be on nodes outside of this run
  };
  Cause cause;
  Code code = Code::ok;
  std::string message;

  // Soon after members were lost or came back it may not be so any more.
  bool may_pass() const {
    return cause == Cause::blocked || cause == Cause::no_connection || cause == Cause::node_lost;
  }
};

struct ReportedVersion {
  Level level = Level::none;     // that may be reported; none also while it is captured
  std::optional<WhyNot> broken;  // no level is worth waiting for: not_there, damaged, not_written
};
ReportedVersion reported(const JobState& state, VersionNumber version);

// What keeps the version from the level, nearest first; empty: it is there, or nothing is known to
// keep it.
std::vector<WhyNot> why_not(const JobState& state, VersionNumber version, Level wanted);

// The levels that versions of this job can reach.
bool is_configured(const JobState& state, Level level);
Level highest_level(const JobState& state);
WhyNot not_configured(const JobState& state, Level level);

// What this node itself could not write or record of versions of the present run, for all nodes.
std::vector<Blocker> blockers_here(const JobState& state);
// The last copy to shared storage, if it failed and no newer version was copied; else null.
const CopyFailed* failed_copy(const JobState& state);

}  // namespace backstay::agent
