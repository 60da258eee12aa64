// What programs wrote into captured files, for the event log (docs/format/events.md).
#pragma once

#include "agent/version/job_state.h"

namespace backstay::agent {

void record_writes(const JobState& state, const wire::NoteWrites& noted);

}  // namespace backstay::agent
