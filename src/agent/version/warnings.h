// What goes wrong with a job's versions for now, in sentences for people: for `status`, and for the
// program, which hears each once with its next checkpoint. Levels are not changed by any of this.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "agent/version/job_state.h"

namespace backstay::agent {

struct Warning {
  enum class Kind {
    not_written,         // to this node's disk
    not_recorded,        // the commit record of what is on this node's disk
    not_protected,       // no node can keep copies or parity for now
    durable_unreadable,  // the durable directory could not be read when the run began
    not_copied,          // the last copy to the durable directory failed
  };
  Kind kind;
  std::string text;
  // Distinguishes one of its kind from the next, where it matters.
  std::uint64_t number = 0;
};

std::vector<Warning> warnings(const JobState& state);

class UnreportedWarnings {
 public:
  // One that the present run has not got since it began, else "".
  std::string take(const JobState& state);

 private:
  RunId run_ = 0;
  std::map<Warning::Kind, std::uint64_t> told_;
};

}  // namespace backstay::agent
