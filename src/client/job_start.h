// The begin of a job, before anybody keeps its versions: its settings, its name, its run and the
// program, the same on all ranks.
#pragma once

#include <string>

#include "base/config.h"
#include "base/ids.h"
#include "base/result.h"
#include "client/group.h"
#include "client/origin.h"

namespace backstay::client {

struct JobStart {
  Config config;     // with the job's name; settings of the job are rank 0's (job_settings.h)
  std::string file;  // of the configuration; "": none
  RunId run = 0;
  Origin origin = {};
};

// Collective. `config`: a path, or NULL. Errors: config; those of take_settings_of_rank_0().
Result<JobStart> begin_job(const Group& group, const char* config);

}  // namespace backstay::client
